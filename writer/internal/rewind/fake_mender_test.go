package rewind

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// asks reports whether the ledger may have a board: then it does not begin on a damaged master before the
// ledger has answered.
func asks(board string) bool { return board[0] == 'L' }

// began is where a run begins: behind a change of another one.
type began struct {
	run, seq uint64
}

// What prepare.lua may begin.
const (
	beginAny = iota
	beginThere
	beginNone
)

// ask is ask.lua.
func (n *node) ask(key Master, life, board string) string {
	switch h, no := n.data.hashes[key], n.lacks(key); {
	case no != "":
		return no
	case h == nil || h.Life != life:
		return "gone"
	case !h.Damaged || n.data.answers[board] == n.era:
		return "go"
	}
	return "waits"
}

// mayBegin asks whether a board may begin on a node that does not have it.
func (wr *writer) mayBegin(t *thread, s int, board string) string {
	n, key := wr.view[s], wr.shards[s].name()
	life := wr.m.hashes[key].Life
	return ask(t, func() string { return n.ask(key, life, board) })
}

// begins returns what may begin without a question.
func (wr *writer) begins(board string) int {
	switch {
	case !asks(board) || !wr.rules.asks:
		return beginAny
	case slices.ContainsFunc(slices.Collect(maps.Values(wr.m.hashes)), func(h Hash) bool { return h.Damaged }):
		return beginNone
	}
	return beginThere
}

// runMender is the ledger that rebuilds boards of damaged masters.
func (w *world) runMender(t *thread) {
	for {
		t.sleep(time.Duration(w.rand.IntN(10)) * w.mendEvery)
		sh := w.shards[w.rand.IntN(len(w.shards))]
		n := sh.nodes[w.rand.IntN(len(sh.nodes))] // whom it takes for the master
		h, no := ask2(t, n.history)
		if no == "" && ask(t, func() bool { return n.isDamaged(h) }) {
			w.mend(t, sh.id, n, h)
		}
	}
}

func (n *node) isDamaged(h History) bool {
	now, no := n.history()
	return no == "" && now == h && n.hash() != nil && n.hash().Damaged
}

func (w *world) mend(t *thread, s int, n *node, h History) {
	for end := ask(t, func() int { return len(w.ledger.topic) }); w.ledger.next < end; {
		t.sleep(20 * time.Millisecond)
	}
	for _, board := range slices.Sorted(maps.Keys(w.place)) {
		if !asks(board) || w.place[board] != s {
			continue
		}
		last := w.ledger.last(board)
		if last.run > 0 && ask(t, func() bool { return n.isDamaged(h) && n.isLost(board, last) }) {
			last = w.ledger.last(board)
			b := w.ledger.rebuilt(board, h.Era, w.nextRun(), w.rules.gap)
			if !ask(t, func() bool { return n.put(h, board, b, last) }) {
				return
			}
			w.say("rebuilt: %s on %s: run %d seq %d", board, n.name, b.run, b.seq)
		}
		if !ask(t, func() bool { return n.answer(h, board) }) {
			return
		}
	}
	ask(t, func() bool {
		if n.isDamaged(h) {
			w.say("whole: %s", n.name)
			key := n.shard.name()
			n.do(func(d *data) { d.hashes[key].Damaged, d.answers = false, make(map[string]Era) })
		}
		return true
	})
}

func (n *node) isLost(board string, last record) bool {
	b := n.data.boards[board]
	return b == nil || !b.closed && b.era != n.era && (b.seq < last.seq || b.run < last.run)
}

// put is switch.lua.
func (n *node) put(h History, board string, b *board, last record) bool {
	if !n.isDamaged(h) {
		return false
	}
	if n.isLost(board, last) {
		n.parents[b.run] = began{last.run, b.seq}
		n.do(func(d *data) { d.boards[board] = b.clone() })
	}
	return true
}

func (n *node) answer(h History, board string) bool {
	if n.isDamaged(h) {
		n.do(func(d *data) { d.answers[board] = h.Era })
		return true
	}
	return false
}

func (b *board) clone() *board {
	c := *b
	c.scores, c.orders = maps.Clone(b.scores), maps.Clone(b.orders)
	return &c
}

// rebuilt returns what the changes up to the latest one make, in a new run. Behind one that is missing, as nobody has published
// it, scores have what it did, and nothing tells that its order was applied: what is there is read again from the log.
func (l *ledger) rebuilt(name string, era Era, run uint64, gap bool) *board {
	b := &board{era: era, run: run, scores: make(map[string]score), orders: make(map[int]record)}
	for _, u := range l.stands(name) {
		b.orders[u.id] = u.record
	}
	for _, p := range inOrder(b) {
		if gap && p.seq > b.seq+1 {
			delete(b.orders, p.id)
			continue
		}
		b.seq = max(b.seq, p.seq)
		if b.scores[p.member] = (score{p.number, p.seq}); p.gone {
			delete(b.scores, p.member)
		}
	}
	return b
}

// noteSafe notes, before keys are deleted, what the ledger can bring back.
func (w *world) noteSafe(s int, n *node) {
	if len(w.topic.committed) == 0 { // at the first start: nobody has noted that there are positions
		return
	}
	published, named := make(map[int]bool), make(map[Era]bool)
	for _, u := range w.ledger.topic {
		for _, era := range strings.Fields(u.named) {
			named[Era(era)] = true
		}
	}
	for _, u := range w.ledger.topic { // what is of a server that nobody has named yet is read again
		published[u.id] = published[u.id] || u.named == "" && asks(u.board) && (u.era == "" || named[u.era])
	}
	for name, b := range n.data.boards {
		for _, p := range inOrder(b) {
			if !published[p.id] || w.place[name] != s {
				break
			}
			w.safe[p.id] = true
		}
	}
}
