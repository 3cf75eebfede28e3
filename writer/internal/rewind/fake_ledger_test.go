package rewind

import (
	"maps"
	"slices"
	"time"
)

// ledger is the table of changes and of scores in SQL.
type ledger struct {
	topic []update
	next  int
	rows  map[orderKey]update
	at    map[placeKey]update
	score map[memberKey]update
	last  map[string]update

	adopted int
}

type orderKey struct {
	board string
	id    int
}

type placeKey struct {
	board    string
	run, seq uint64
}

type memberKey struct{ board, member string }

func (r record) after(s record) bool { return r.run > s.run || r.run == s.run && r.seq > s.seq }

// take writes the next update. It has no rule for clashes: there must be none.
func (w *world) take(l *ledger) {
	u := l.topic[l.next]
	l.next++
	at := placeKey{u.board, u.run, u.seq}
	if there, ok := l.at[at]; ok && there != u {
		w.fail("the ledger has two changes at %+v: %+v and %+v", at, there, u)
	}
	l.at[at] = u
	if there, ok := l.rows[orderKey{u.board, u.id}]; !ok || u.run > there.run {
		l.rows[orderKey{u.board, u.id}] = u
	}
	if m := (memberKey{u.board, u.member}); u.after(l.score[m].record) {
		l.score[m] = u
	}
	if u.after(l.last[u.board].record) {
		l.last[u.board] = u
	}
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

// strays reports whether the ledger has changes of a run that is not one of those that led to the
// board in Redis. Two servers were taken for one master, or a state came back from before keys were
// deleted: the highest run is not always the one that stands.
func (l *ledger) strays(name string, b *board) bool {
	for _, u := range l.rows {
		if u.board == name && !slices.Contains(b.runs, u.run) {
			return true
		}
	}
	return false
}

// adopt takes a board from Redis.
func (l *ledger) adopt(name string, b *board) {
	l.adopted++
	maps.DeleteFunc(l.score, func(k memberKey, _ update) bool { return k.board == name })
	maps.DeleteFunc(l.rows, func(k orderKey, _ update) bool { return k.board == name })
	l.last[name] = update{board: name, record: record{run: b.run, seq: b.seq}}
	for _, p := range inOrder(b) {
		u := update{p.id, name, p.record}
		l.rows[orderKey{name, p.id}], l.score[memberKey{name, p.member}] = u, u
	}
}
