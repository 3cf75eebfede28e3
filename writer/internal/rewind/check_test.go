package rewind

import (
	"maps"
	"slices"
)

// checkPositions checks that a server has what its positions tell.
func (w *world) checkPositions(s int, n *node) {
	if n.hash() == nil {
		return
	}
	for id, p := range n.hash().Of {
		if p.Topic != w.topic.id {
			continue
		}
		for offset, c := range w.topic.parts[id].records {
			if int64(offset) < p.Next && !w.cut[c.id] {
				w.checkHas(s, n, entry{c, p.Topic, id, int64(offset)})
			}
		}
	}
}

func (w *world) checkHas(s int, n *node, e entry) {
	names := []string{e.board}
	if e.board[0] == 'C' {
		names = append(names, "F0")
	}
	for _, name := range names {
		if w.place[name] != s || w.flushed[s] {
			continue
		}
		b := n.data.boards[name]
		if b != nil {
			if _, ok := b.orders[e.id]; ok {
				continue
			}
			if guarded(name) && (w.repartial || b.from <= e.offset && e.offset < b.next) {
				continue
			}
		}
		w.fail("%s has position %+v of partition %d, but not order %d at %d", n.name, n.hash().Of[e.part], e.part, e.id, e.offset)
	}
}

// check compares the end of a history with what was asked for.
func (w *world) check() {
	for _, name := range slices.Sorted(maps.Keys(w.place)) {
		n := w.shards[w.place[name]].master
		b := n.data.boards[name]
		if b == nil {
			b = &board{}
		}
		w.checkCounted(name, b)
		w.checkOrder(name, b)
		w.checkLedger(name, b)
		if guarded(name) && w.exact(name) {
			w.checkGuard(name, b)
		}
	}
	w.checkRewinds()
}

// exact reports whether nothing has happened after which a board's order is not promised.
func (w *world) exact(name string) bool {
	return !w.flushed[w.place[name]] && !w.repartial && len(w.cut) == 0
}

// changes returns the commands that change a board.
func (w *world) changes(name string) (all []*command) {
	for _, c := range w.commands {
		if c.board == name || name == "F0" && c.board[0] == 'C' {
			all = append(all, c)
		}
	}
	return all
}

// checkCounted: every command is counted once, and the scores are what they make.
func (w *world) checkCounted(name string, b *board) {
	for _, c := range w.changes(name) {
		_, ok := b.orders[c.id]
		switch {
		case ok && w.refused[c.id] && c.records == 1 && w.exact(name):
			w.fail("order %d of %s was refused and is counted", c.id, name)
		case ok || w.cut[c.id] && (!w.safe[c.id] || w.repartial): // of a topic that was made again nobody knows that there were positions
		case !guarded(name):
			w.fail("order %d of %s is not counted (acked: %d)", c.id, name, c.acked)
		case c.acked > 0 && w.exact(name):
			w.fail("order %d of %s was acknowledged and is refused", c.id, name)
		}
	}
	scores := make(map[string]int64)
	for _, rec := range inOrder(b) {
		c := w.commandOf(rec.id)
		switch c.op {
		case opIncr:
			scores[c.member] += c.number
		case opSet:
			scores[c.member] = c.number
		case opDelete:
			delete(scores, c.member)
		}
	}
	got := make(map[string]int64)
	for member, s := range b.scores {
		got[member] = s.number
	}
	if !maps.Equal(scores, got) {
		w.fail("%s has %v, want %v", name, got, scores)
	}
}

type placed struct {
	id int
	record
}

// inOrder returns what a board has applied, in sequence.
func inOrder(b *board) (all []placed) {
	for id, rec := range b.orders {
		all = append(all, placed{id, rec})
	}
	slices.SortFunc(all, func(x, y placed) int { return int(x.seq) - int(y.seq) })
	return all
}

func (w *world) commandOf(id int) *command {
	for _, c := range w.commands {
		if c.id == id {
			return c
		}
	}
	return nil
}

// checkOrder: commands that do not commute are in the log's order; and what was posted after another
// one was acknowledged is behind that one.
func (w *world) checkOrder(name string, b *board) {
	if commutes(name) || !w.exact(name) {
		return
	}
	all := inOrder(b)
	for i, late := range all {
		l := w.commandOf(late.id)
		for _, early := range all[:i] {
			e := w.commandOf(early.id)
			if !ordered(name) && e.member != l.member || guarded(name) && max(l.records, e.records) > 1 {
				continue // of the other member, or refused at first
			}
			if w.rules.throughLog && l.part == e.part && l.first < e.first {
				w.fail("%s: order %d at %d is behind order %d at %d", name, l.id, l.first, e.id, e.first)
			}
			if l.acked > 0 && l.acked <= e.appended {
				w.fail("%s: order %d was acknowledged before order %d was posted, and is behind it", name, l.id, e.id)
			}
		}
	}
}

// checkGuard: a board with a guard is what the log makes of it.
func (w *world) checkGuard(name string, b *board) {
	if !w.rules.boardKey || !w.rules.throughLog {
		return
	}
	want, seen := make(map[string]int64), make(map[int]bool)
	for _, p := range w.topic.parts {
		for _, c := range p.records {
			_, on := want[c.member]
			switch {
			case c.board != name || seen[c.id]:
				continue
			case c.op == opDelete:
				delete(want, c.member)
			case !on && len(want) >= maxMembers:
				continue
			case c.op == opSet:
				want[c.member] = c.number
			default:
				want[c.member] += c.number
			}
			seen[c.id] = true
		}
	}
	for _, c := range w.changes(name) {
		if _, ok := b.orders[c.id]; ok != seen[c.id] {
			w.fail("%s: order %d is applied: %v, want %v", name, c.id, ok, seen[c.id])
		}
	}
	for member, s := range b.scores {
		if want[member] != s.number {
			w.fail("%s: %s has %d, want %d", name, member, s.number, want[member])
		}
	}
}

// checkLedger: the ledger has what Redis has.
func (w *world) checkLedger(name string, b *board) {
	if guarded(name) && !w.exact(name) || len(w.cut) > 0 || w.forked[name] {
		return // what is lost for good is reported
	}
	rows, scores := make(map[int]record), make(map[string]int64)
	for _, u := range w.ledger.stands(name) {
		rows[u.id] = u.record
		if scores[u.member] = u.number; u.gone {
			delete(scores, u.member)
		}
	}
	for id, rec := range b.orders {
		if row := rows[id]; row.placed() != rec.placed() { // two servers may have applied the same commands alike
			w.fail("%s: order %d is %+v, and in the ledger %+v", name, id, rec, row)
		}
	}
	for id := range rows {
		if _, ok := b.orders[id]; !ok {
			w.fail("%s: order %d is in the ledger alone", name, id)
		}
	}
	if !maps.EqualFunc(scores, b.scores, func(n int64, s score) bool { return s.number == n }) {
		w.fail("%s has %v, and in the ledger %v", name, b.scores, scores)
	}
}

// checkRewinds: there are no more than there is reason for.
func (w *world) checkRewinds() {
	for _, wr := range w.writers {
		if most := wr.assigned + wr.m.Changes() + wr.marks + w.scriptFlushes + w.flushes + w.logEvents + wr.led + 2*w.moves; wr.rewinds > most {
			w.fail("%s has rewound %d times, with %d assignments, %d changes, and %d more reasons", wr.name, wr.rewinds, wr.assigned, wr.m.Changes(), most-wr.assigned-wr.m.Changes())
		}
	}
}
