package faults

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"rankcache"
	"rankcache/wire"
)

// history is what one board was at each seq, as one Redis remembers it. It is
// kept as the list of changes and one copy of the board that walks along it.
type history struct {
	changes []change               // the i-th made seq i+1
	early   map[uint64]wire.Update // known, but not yet joined to changes
	last    map[string]Place       // every member at the end of changes

	at     uint64 // the seq that rows and scores are of
	rows   []rankcache.Entry
	scores map[string]float64
	sum    uint64 // of all members
}

// change is one member before and after an order.
type change struct {
	member        string
	before, after Place
	amended       []change // what was changed by hand before the next order
}

// Place is a member's score, or that it is not on the board.
type Place struct {
	score float64
	on    bool
}

// removes reports whether the member is not on the board after the change.
func (c *change) removes(member string) bool {
	gone := func(c change) bool { return c.member == member && !c.after.on }
	return gone(*c) || slices.ContainsFunc(c.amended, gone)
}

func newHistory() *history {
	return &history{early: map[uint64]wire.Update{}, last: map[string]Place{}, scores: map[string]float64{}}
}

// known returns the seq up to which everything is known.
func (h *history) known() uint64 { return uint64(len(h.changes)) }

// add notes an order that Redis has applied, in any sequence. Added twice, it must
// be the same.
func (h *history) add(u wire.Update) error {
	if u.Seq <= h.known() {
		c, p := h.changes[u.Seq-1], placeAfter(u)
		if c.member != u.Member || c.after != p {
			return fmt.Errorf("seq %d was %q %+v and is now %q %+v", u.Seq, c.member, c.after, u.Member, p)
		}
		return nil
	}
	h.early[u.Seq] = u
	for {
		next, ok := h.early[h.known()+1]
		if !ok {
			return nil
		}
		delete(h.early, next.Seq)
		c := change{member: next.Member, before: h.last[next.Member], after: placeAfter(next)}
		h.changes, h.last[next.Member] = append(h.changes, c), c.after
	}
}

func placeAfter(u wire.Update) Place {
	if u.Op.Removes() {
		return Place{}
	}
	return Place{u.Score, true}
}

// until returns a history of its own that ends at seq.
func (h *history) until(seq uint64) *history {
	cut := newHistory()
	cut.changes = slices.Clone(h.changes[:min(seq, h.known())])
	for _, c := range cut.changes {
		cut.last[c.member] = c.after
		for _, a := range c.amended {
			cut.last[a.member] = a.after
		}
	}
	return cut
}

// amend records members as they were changed by hand after the last order.
func (h *history) amend(members map[string]Place) {
	last := &h.changes[len(h.changes)-1]
	last.amended = slices.Clone(last.amended) // an earlier history has the same
	for m, p := range members {
		last.amended = append(last.amended, change{member: m, before: h.last[m], after: p})
		h.last[m] = p
	}
}

// all returns the members of the board at the end.
func (h *history) all() (members []string) {
	for m, p := range h.last {
		if p.on {
			members = append(members, m)
		}
	}
	return members
}

// walk makes rows and scores those of seq, which must be known.
func (h *history) walk(seq uint64) {
	for ; h.at < seq; h.at++ {
		c := h.changes[h.at]
		h.move(c.member, c.before, c.after)
		for _, a := range c.amended {
			h.move(a.member, a.before, a.after)
		}
	}
	for ; h.at > seq; h.at-- {
		c := h.changes[h.at-1]
		for _, a := range slices.Backward(c.amended) {
			h.move(a.member, a.after, a.before)
		}
		h.move(c.member, c.after, c.before)
	}
}

func (h *history) move(member string, from, to Place) {
	if from.on {
		i := h.find(rankcache.Entry{Member: member, Score: from.score})
		h.rows = slices.Delete(h.rows, i, i+1)
		delete(h.scores, member)
		h.sum = (h.sum - wire.Hash(member, from.score)) & wire.SumMask
	}
	if to.on {
		e := rankcache.Entry{Member: member, Score: to.score}
		h.rows = slices.Insert(h.rows, h.find(e), e)
		h.scores[member] = to.score
		h.sum = (h.sum + wire.Hash(member, to.score)) & wire.SumMask
	}
}

// find returns where e is or belongs: score, then member, both falling.
func (h *history) find(e rankcache.Entry) int {
	return sort.Search(len(h.rows), func(i int) bool { return !before(h.rows[i], e) })
}

func before(a, b rankcache.Entry) bool {
	if a.Score != b.Score {
		return a.Score > b.Score
	}
	return strings.Compare(a.Member, b.Member) > 0
}

// rank returns the member's 1-based rank at the seq walked to, 0 for none.
func (h *history) rank(member string) int {
	score, on := h.scores[member]
	if !on {
		return 0
	}
	return h.find(rankcache.Entry{Member: member, Score: score}) + 1
}

// page returns the rows from start on, at most limit.
func (h *history) page(start, limit int) []rankcache.Entry {
	start = min(max(start, 0), len(h.rows))
	return h.rows[start:min(start+limit, len(h.rows))]
}
