package faults

import (
	"errors"
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

	at     uint64 // the seq that rows and places are of
	rows   []rankcache.Entry
	places map[string]Place // of the members in rows
	sum    uint64           // of all members
}

// change is one member before and after an order.
type change struct {
	member        string
	before, after Place
	amended       []change // what was changed by hand before the next order
}

// Place is what a member has: a score, or none, and the data beside it; a hidden one has them unseen.
type Place struct {
	score  float64
	on     bool
	data   string
	hidden bool
	serial uint64 // of the hide or restore that stands
}

// seen reports whether the member is on the board.
func (p Place) seen() bool { return p.on && !p.hidden }

// after returns the place after an order, as the commands add up, which is what the answer must tell.
func (p Place) after(u wire.Update) (Place, error) {
	next := p
	switch _, serial, moves := wire.ParseHide(u.Op.String(), u.OrderID, u.Member); {
	case moves && serial > p.serial:
		next.hidden, next.serial = u.Op == wire.OpHide, serial
	case moves: // a later one stands
	case u.Op.Removes():
		next.score, next.on, next.data = 0, false, ""
	case u.Op == wire.OpBest && p.on && u.Delta <= p.score: // not better
	default:
		next.take(u)
	}
	if next.on != u.Scored() || next.on && next.score != u.Score || next.hidden != u.Hiding.Hidden || next.data != u.Data {
		return next, fmt.Errorf("after %+v %+v tells not %+v", p, u, next)
	}
	return next, nil
}

// take gives the member the score of an order, and the data that its command had ([wire.Update.Given]).
func (p *Place) take(u wire.Update) {
	switch u.Op {
	case wire.OpIncr:
		p.score += u.Delta
	case wire.OpBest:
		p.score = u.Delta
	default:
		p.score = u.Score
	}
	if p.on = true; u.Given != "" {
		p.data = u.Given[1:]
	}
}

// removes reports whether the member is not on the board after the change.
func (c *change) removes(member string) bool {
	gone := func(c change) bool { return c.member == member && !c.after.seen() }
	return gone(*c) || slices.ContainsFunc(c.amended, gone)
}

func newHistory() *history {
	return &history{early: map[uint64]wire.Update{}, last: map[string]Place{}, places: map[string]Place{}}
}

// known returns the seq up to which everything is known.
func (h *history) known() uint64 { return uint64(len(h.changes)) }

// add notes an order that Redis has applied, in any sequence. Added twice, it must
// be the same.
func (h *history) add(u wire.Update) (bad error) {
	if u.Seq <= h.known() {
		c := h.changes[u.Seq-1]
		if p, err := c.before.after(u); c.member != u.Member || c.after != p || err != nil {
			return fmt.Errorf("seq %d was %q %+v and is now %q %+v (%w)", u.Seq, c.member, c.after, u.Member, p, err)
		}
		return nil
	}
	h.early[u.Seq] = u
	for {
		next, ok := h.early[h.known()+1]
		if !ok {
			return bad
		}
		delete(h.early, next.Seq)
		before := h.last[next.Member]
		after, err := before.after(next)
		bad = errors.Join(bad, err)
		h.changes, h.last[next.Member] = append(h.changes, change{member: next.Member, before: before, after: after}), after
	}
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
		if p.seen() {
			members = append(members, m)
		}
	}
	return members
}

// walk makes rows and places those of seq, which must be known.
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
	if from.seen() {
		i := h.find(rankcache.Entry{Member: member, Score: from.score})
		h.rows = slices.Delete(h.rows, i, i+1)
		delete(h.places, member)
		h.sum = (h.sum - wire.Hash(rankcache.JoinData(member, from.data), from.score)) & wire.SumMask
	}
	if to.seen() {
		e := rankcache.Entry{Member: member, Score: to.score}
		h.rows = slices.Insert(h.rows, h.find(e), e)
		h.places[member] = to
		h.sum = (h.sum + wire.Hash(rankcache.JoinData(member, to.data), to.score)) & wire.SumMask
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
	p, on := h.places[member]
	if !on {
		return 0
	}
	return h.find(rankcache.Entry{Member: member, Score: p.score}) + 1
}

// page returns the rows from start on, at most limit.
func (h *history) page(start, limit int) []rankcache.Entry {
	start = min(max(start, 0), len(h.rows))
	return h.rows[start:min(start+limit, len(h.rows))]
}
