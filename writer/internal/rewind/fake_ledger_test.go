package rewind

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// ledger is the tables of changes and of boards in SQL.
type ledger struct {
	topic   []update
	next    int
	at      map[string]map[placeKey]update // all that was published of a board
	runs    map[string][]*ledgerRun        // the latest last
	stood   map[string]uint64              // the head of each board
	named   []string                       // eras of the servers that were named last
	aside   map[orderKey]time.Time         // what does not stand, and since when
	lost    map[orderKey]bool              // of these what has not come again in time
	parents map[uint64]began
	rules   *rules
}

// ledgerRun is a row of rank_board.
type ledgerRun struct {
	run  uint64
	last record
	on   []string // the servers on which it was found
}

type orderKey struct {
	board string
	id    int
}

type placeKey struct{ run, seq uint64 }

// comesAgain is how long what was set aside may take to come again.
const comesAgain = 20 * time.Second

// take writes the next record. It has no rule for clashes: there must be none.
func (w *world) take(l *ledger) {
	u := l.topic[l.next]
	l.next++
	if u.named != "" {
		l.named = strings.Fields(u.named)
		for board := range l.runs {
			l.stood[board] = l.head(board)
		}
		return
	}
	if l.at[u.board] == nil {
		l.at[u.board] = make(map[placeKey]update)
	}
	at := placeKey{u.run, u.seq}
	if there, ok := l.at[u.board][at]; ok && (there.id != u.id || there.record != u.record) {
		w.fail("the ledger has two changes at %+v: %+v and %+v", at, there, u)
	}
	l.at[u.board][at] = u
	l.found(&u)
	l.stood[u.board] = l.head(u.board)
}

// found notes on which server a change was found.
func (l *ledger) found(u *update) {
	era := string(u.era)
	if all := l.stands(u.board); u.past && (len(all) == 0 || u.run < all[0].run || slices.ContainsFunc(all, func(o update) bool { return o.run == u.run && o.seq == u.seq })) {
		era = "nowhere"
	}
	i, is := slices.BinarySearchFunc(l.runs[u.board], u.run, func(r *ledgerRun, run uint64) int { return cmp.Compare(r.run, run) })
	if !is {
		l.runs[u.board] = slices.Insert(l.runs[u.board], i, &ledgerRun{run: u.run})
	}
	r := l.runs[u.board][i]
	if era != "" {
		r.on = append(r.on, era)
	}
	if r.last.seq < u.seq {
		r.last = u.record
	}
}

// head returns the highest run of the servers that were named last; if there is none, what stood before stays. Runs of which
// nobody told where they are count as found.
func (l *ledger) head(board string) (head uint64) {
	known, stood := false, l.stood[board]
	for _, r := range l.runs[board] {
		is := slices.ContainsFunc(r.on, func(era string) bool { return slices.Contains(l.named, era) })
		known = known || is
		if is || !known && (len(l.named) == 0 || len(r.on) == 0) || !l.rules.namedHead {
			head = r.run
		}
	}
	switch {
	case !known && head < stood && l.rules.namedHead:
		return stood
	case head == 0 && len(l.runs[board]) > 0:
		return l.runs[board][len(l.runs[board])-1].run
	}
	return head
}

// last returns the latest change of a board's head.
func (l *ledger) last(board string) (last record) {
	for _, r := range l.runs[board] {
		if r.run == l.head(board) {
			last = r.last
		}
	}
	return last
}

// stands returns what led to a board's head, in sequence.
func (l *ledger) stands(board string) (all []update) {
	at := began{l.head(board), math.MaxUint64}
	for more, parent := at.run > 0, (began{}); more; at = (began{parent.run, min(parent.seq, at.seq)}) {
		for place, u := range l.at[board] {
			if place.run == at.run && place.seq <= at.seq {
				all = append(all, u)
			}
		}
		parent, more = l.parents[at.run]
	}
	slices.SortFunc(all, func(a, b update) int { return cmp.Compare(a.seq, b.seq) })
	return all
}

// level reports whether a board is what the ledger has, and nothing else may come again.
func (l *ledger) level(board string, b *board) bool {
	last, scores := l.last(board), make(map[string]int64)
	stands := make(map[int]bool)
	for _, u := range l.stands(board) {
		stands[u.id] = true
		if scores[u.member] = u.number; u.gone {
			delete(scores, u.member)
		}
	}
	for _, u := range l.at[board] {
		if !stands[u.id] && !l.lost[orderKey{board, u.id}] {
			return false
		}
	}
	return last.seq == b.seq && (last.run < b.run || maps.EqualFunc(scores, b.scores, func(n int64, s score) bool { return s.number == n }))
}

func (w *world) runLedger(t *thread) {
	for {
		for range w.rand.IntN(6) {
			if w.ledger.next < len(w.ledger.topic) {
				w.take(&w.ledger)
			}
		}
		t.sleep(time.Duration(10+w.rand.IntN(100)) * time.Millisecond)
	}
}

// runJudge asks Redis where boards are, looks for what does not come again, and asks Redis for it before it is lost.
func (w *world) runJudge(t *thread) {
	l := &w.ledger
	taken := rand.New(rand.NewPCG(uint64(w.orders), 2)) // for the master
	for {
		t.sleep(2 * time.Second)
		for _, board := range slices.Sorted(maps.Keys(l.at)) {
			nodes := w.shards[w.place[board]].nodes
			l.locate(board, nodes[taken.IntN(len(nodes))])
			stands := make(map[int]bool)
			for _, u := range l.stands(board) {
				stands[u.id] = true
			}
			for _, u := range l.at[board] {
				w.judge(orderKey{board, u.id}, stands[u.id])
			}
		}
	}
}

// locate notes where a board is that another run leads. Of one whose run has no change yet it is the latest that has its state.
func (l *ledger) locate(board string, n *node) {
	b := n.data.boards[board]
	if b == nil || b.run == l.head(board) || n.refuses() != "" || !l.rules.locates || !slices.Contains(l.named, string(n.era)) {
		return
	}
	for _, r := range slices.Backward(l.runs[board]) {
		if r.run == b.run || r.run < b.run && r.last.seq == b.seq && r.last.placed() == b.last().placed() {
			r.on = append(r.on, string(n.era))
			l.stood[board] = l.head(board)
			return
		}
	}
}

// last returns the latest change of a board.
func (b *board) last() (last record) {
	for _, rec := range b.orders {
		if rec.seq == b.seq {
			last = rec
		}
	}
	return last
}

func (w *world) judge(k orderKey, stands bool) {
	l, since := &w.ledger, w.ledger.aside[k]
	switch {
	case stands:
		delete(l.aside, k)
		delete(l.lost, k)
	case since.IsZero():
		l.aside[k] = w.now
	case w.now.Sub(since) > comesAgain:
		b := w.shards[w.place[k.board]].master.data.boards[k.board]
		if b == nil || b.orders[k.id] == (record{}) {
			l.lost[k] = true
		}
	}
}
