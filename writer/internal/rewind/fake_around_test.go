package rewind

import (
	"slices"
	"time"
)

// postTo has a caller post a command to a writer. It is repeated to others until it is answered, or
// given up.
func (w *world) postTo(wr *writer, c *command) {
	w.callers++
	w.spawn(nil, func(t *thread) {
		defer func() { w.callers-- }()
		for range 1 + w.rand.IntN(3) {
			done, answered := false, false
			at := wr
			w.spawn(at, func(t *thread) { answered = at.post(t, c); done = true })
			for wait := w.now.Add(PostTimeout + time.Second); !done && w.now.Before(wait); {
				t.sleep(50 * time.Millisecond)
			}
			if answered {
				c.acked = w.step
				w.say("acked: order %d", c.id)
				return
			}
			wr = w.writers[w.rand.IntN(len(w.writers))]
		}
	})
}

// post is the way of a posted command through its writer. It reports whether the caller is told that
// it was applied.
func (wr *writer) post(t *thread, c *command) bool {
	e, late := ask2(t, func() (e entry, late bool) {
		if wr.closing.marked {
			return e, true
		}
		return wr.append(c), false
	})
	if late { // refused by the time of its record
		return false
	}
	since := wr.now
	if wr.rules.throughLog && !commutes(c.board) {
		return wr.await(t, &Post{wr.shards[wr.place[c.board]].name(), e.topic, e.part, e.offset, since}, c)
	}
	names := []string{c.board}
	if c.board[0] == 'C' {
		names = append(names, "F0")
	}
	var out []update
	for i := 0; i < len(names); {
		if wr.now.Sub(since) > PostTimeout {
			return false
		}
		s := wr.place[names[i]]
		if len(wr.eras()) == 0 || !commutes(c.board) && wr.rules.healing && !wr.healedAt(t, s, e.part) {
			t.sleep(20 * time.Millisecond)
			continue
		}
		replies, ok := wr.call(t, wr.m.Round(), names[i], []entry{e})
		if !ok {
			continue
		}
		if replies[0].outcome == Refused {
			return false
		}
		out = append(out, wr.found(c.id, names[i], replies[0]))
		i++
	}
	wr.publish(t, out, nil)
	return true
}

// healedAt tells, for the rule that posts are applied at once, whether their partition is healed.
func (wr *writer) healedAt(t *thread, s int, part int32) bool {
	n := wr.view[s]
	return ask(t, func() bool {
		return n.hash() != nil && n.hash().Of[part].Healed == n.era && slices.Contains(wr.eras(), n.era)
	})
}

// await looks until the reader of the partition has had the command.
func (wr *writer) await(t *thread, p *Post, c *command) bool {
	s := wr.place[c.board]
	for {
		n, l := wr.view[s], Look{}
		var no string
		l.Before, no = ask2(t, n.history)
		if no == "" {
			l.Position = ask(t, func() Position {
				if n.hash() == nil {
					return Position{}
				}
				return n.hash().Of[p.Partition]
			})
			l.Recorded = ask(t, func() bool {
				b := n.data.boards[c.board]
				if b == nil {
					return false
				}
				_, ok := b.orders[c.id]
				return ok
			})
			l.After, no = ask2(t, n.history)
		}
		if no != "" {
			wr.discover(t, s)
			l = Look{}
		}
		switch Judge(wr.now, p, &l) {
		case WasApplied:
			return true
		case WasRefused:
			if !guarded(c.board) && !wr.cut[c.id] {
				wr.fail("order %d of %s is told to be refused", c.id, c.board)
			}
			return false
		case NotInTime:
			return false
		}
		t.sleep(50 * time.Millisecond)
	}
}

// closing is the controller, which closes all boards at the end of one period.
type closing struct {
	ended  bool // nothing is posted any more
	marked bool // what is posted now is late
	left   []string
}

func (w *world) runController(t *thread) {
	for !w.closing.ended || w.callers > 0 {
		t.sleep(200 * time.Millisecond)
	}
	marks := ask(t, func() []int64 { w.closing.marked = true; return w.ends() })
	id := w.topic.id
	era := make(map[string]Era) // of the first look at which a board was closed
	for len(w.closing.left) > 0 {
		t.sleep(100 * time.Millisecond)
		board := w.closing.left[w.rand.IntN(len(w.closing.left))]
		if w.topic.id != id || len(w.topic.parts) != len(marks) {
			marks, id = w.ends(), w.topic.id
		}
		if !ask(t, func() bool { return w.committed(marks) }) {
			continue
		}
		sh := w.shards[w.place[board]]
		n := sh.nodes[w.rand.IntN(len(sh.nodes))] // whom it takes for the master
		now, no := ask2(t, n.readEra)
		if no != "" {
			continue
		}
		if era[board] == now { // the second look
			if delete(era, board); ask(t, func() bool { return n.isClosed(board) }) && sh.master == n {
				w.closing.left = slices.DeleteFunc(w.closing.left, func(b string) bool { return b == board })
				continue
			}
		}
		if w.rules.positionClose && !w.arePast(t, n, id, marks) {
			continue
		}
		if !ask(t, func() bool { return w.settled(n, board) }) {
			continue
		}
		if ask(t, func() string { return n.closeBoard(&w.rules, now, board) }) == "" {
			w.say("closed: %s on %s", board, n.name)
			if era[board] = now; n.data.boards[board] == nil { // it was never made
				w.closing.left = slices.DeleteFunc(w.closing.left, func(b string) bool { return b == board })
			}
		}
	}
}

func (n *node) isClosed(board string) bool {
	b := n.data.boards[board]
	return b != nil && b.closed
}

func (w *world) ends() (ends []int64) {
	for _, p := range w.topic.parts {
		ends = append(ends, p.end())
	}
	return ends
}

func (w *world) committed(marks []int64) bool {
	for p, mark := range marks {
		if w.topic.committed[int32(p)] < mark && mark > w.topic.parts[p].start {
			return false
		}
	}
	return true
}

// arePast asks all masters, as a board may have moved from one that lacks something.
func (w *world) arePast(t *thread, its *node, topic string, marks []int64) bool {
	for _, sh := range w.shards {
		n := sh.nodes[w.rand.IntN(len(sh.nodes))]
		if sh == its.shard {
			n = its
		}
		if _, no := ask2(t, n.readEra); no != "" || !ask(t, func() bool { return n.isPast(topic, marks) }) {
			return false
		}
	}
	return true
}

// isPast reports whether all positions are at or behind the marks.
func (n *node) isPast(topic string, marks []int64) bool {
	for p, mark := range marks {
		if n.hash() == nil {
			return false
		}
		there, ok := n.hash().Of[int32(p)]
		if !ok || there.Topic != topic || there.Next < mark {
			return false
		}
	}
	return true
}

// settled reports whether the ledger has a board's state. What the log has no longer is lost for good.
func (w *world) settled(n *node, board string) bool {
	b := n.data.boards[board]
	return b == nil || len(w.cut) > 0 || w.forked[board] || w.ledger.level(board, b)
}
