package ledger

import (
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// TestAnyHistory: whatever failovers, deletions by hand and old files a board goes through, and in whatever order
// two writers publish what they have applied, rank_log ends with what led to the board in Redis, and rank_lost with all
// else that was ever published.
func TestAnyHistory(t *testing.T) {
	seeds := uint64(30)
	if testkit.Full() {
		seeds = 120 // 400 take nine minutes of PostgreSQL
	}
	both(t, func(t *testing.T, s *Store) {
		next, left := int64(0), 0
		for seed := range seeds {
			w := newWorld(seed)
			if w.live(); w.ambiguous() {
				left++
				continue
			}
			next = w.tell(t, s, next)
			w.check(t, s)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		t.Logf("%d of %d histories were left out, as nothing tells what was continued in them", left, seeds)
	})
}

// world is a board's way through several servers and states, and what writers publish of it.
type world struct {
	*rand.Rand
	seed     uint64
	data     bool // members may have data
	hides    bool // members are hidden and restored, and the board is not trimmed
	now      *server
	earlier  []*server // states that may come back
	run      uint64
	eras     int
	away     []*server // that are alive, in their own run, though the address leads to another one
	commands []command
	topic    []*wire.LedgerUpdate // in the order in which it is published
}

// server is a state of Redis: the board, the changes that led to it, and how far it is in the log of commands.
type server struct {
	*history
	path    []*wire.LedgerUpdate
	applied map[string]bool
	at      int
	era     string
}

// command is one of the log.
type command struct {
	op     wire.Op
	member string
	number float64
	order  string
	given  string
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), seed: seed, data: seed%3 == 1, hides: seed%3 == 2}
	w.now = &server{history: newHistory(rankcache.BoardID(fmt.Sprint("b", seed)), w.newRun()), applied: make(map[string]bool)}
	w.begin()
	return w
}

func (w *world) newRun() uint64 {
	w.run += 1 + w.Uint64N(3)
	return w.run
}

// begin has another server be Redis from now on, as writers name it.
func (w *world) begin() {
	w.eras++
	w.now.era = fmt.Sprintf("%016x", w.eras)
	w.name()
}

// name has a writer tell who is Redis.
func (w *world) name() { w.topic = append(w.topic, &wire.LedgerUpdate{Era: w.now.era}) }

func (r *server) fork() *server {
	return &server{r.clone(), slices.Clone(r.path), maps.Clone(r.applied), r.at, r.era}
}

// apply applies a command; the board keeps four members, unless it hides some.
func (w *world) apply(c command) {
	r := w.now
	if r.applied[c.order] {
		return
	}
	r.applied[c.order] = true
	u := r.changeWith(c.op, c.member, c.number, c.order, c.given)
	u.Era = r.era
	r.path = append(r.path, u)
	if len(r.scores) > 4 && !w.hides {
		last := slices.MinFunc(slices.Collect(maps.Keys(r.scores)), func(a, b string) int { return int(r.scores[a] - r.scores[b]) })
		u := r.change(wire.OpTrim, last, 0, c.order)
		u.Era = r.era
		r.path = append(r.path, u)
	}
}

// give takes n new commands.
func (w *world) give(n int) {
	for range n {
		c := command{op: wire.OpIncr, member: fmt.Sprint("m", w.IntN(7)), number: float64(w.IntN(1 << 30)), order: fmt.Sprint("o", len(w.commands))}
		switch w.IntN(8) {
		case 0:
			c.op = wire.OpSet
		case 1:
			c.op = wire.OpDelete
		}
		if w.hides && w.IntN(3) == 0 {
			c.op, c.number = wire.OpHide+wire.Op(w.IntN(2)), float64(1+w.IntN(1<<20))
			c.order = wire.HideOrder(uint64(c.number), c.member)
		}
		if w.data && c.op != wire.OpDelete {
			c.given = []string{"", "\x00", "\x00car", "\x00\U0001f3ce"}[w.IntN(4)]
		}
		w.commands = append(w.commands, c)
		w.apply(c)
		w.now.at = len(w.commands)
	}
}

// live takes the board through some events. Each time the writers go on in a new run.
func (w *world) live() {
	w.give(1 + w.IntN(6))
	for range 1 + w.IntN(6) {
		w.publish()
		w.earlier = append(w.earlier, w.now.fork())
		if len(w.away) > 0 && w.IntN(2) == 0 {
			w.comeBack()
			continue
		}
		w.away = append(w.away, w.now)
		w.now = w.now.fork()
		switch w.IntN(5) {
		case 0: // rebuilt, or counted anew
		case 1: // deleted by hand; that the order ids of one life come in another one, of a server that comes back, is not promised
			w.away = nil
			w.now = &server{history: newHistory(w.now.board, 0), applied: make(map[string]bool), at: len(w.commands)}
		default: // a failover, or an old file
			w.now = w.earlier[w.IntN(len(w.earlier))].fork()
			w.now.path = slices.Clone(w.now.path)
		}
		w.now.run = w.newRun()
		w.begin()
		if w.IntN(4) > 0 { // else what was lost stays so
			for _, c := range w.commands[w.now.at:] {
				w.apply(c)
			}
		}
		w.now.at = len(w.commands)
		w.give(1 + w.IntN(5))
	}
	w.publish()
	w.name() // once a minute
}

// comeBack has a server be Redis again that is as it was left. It takes what was applied elsewhere, or nothing happens there.
func (w *world) comeBack() {
	i := w.IntN(len(w.away))
	back := w.away[i]
	w.away[i], w.now = w.now, back
	w.name()
	if w.IntN(3) == 0 {
		return
	}
	for _, c := range w.commands[w.now.at:] {
		w.apply(c)
	}
	w.now.at = len(w.commands)
	w.give(w.IntN(5))
}

// ambiguous reports whether different commands have led to the same state at the same seq, as two deletes
// of members that are not there: then nothing tells which of them a run continues.
func (w *world) ambiguous() bool {
	ways := make(map[rankcache.State]string)
	for _, r := range append(w.earlier, w.now) {
		way := ""
		for _, u := range r.path {
			way += u.OrderID + " "
			at := rankcache.State{Seq: u.Seq, Sum: u.Sum}
			if other, ok := ways[at]; ok && other != way {
				return true
			}
			ways[at] = way
		}
	}
	return false
}

// publish publishes what was applied since, twice where a writer was not sure, and where two were at work
// a little out of order, or late.
func (w *world) publish() {
	for _, u := range w.now.path {
		if slices.Contains(w.topic, u) {
			continue
		}
		at := len(w.topic)
		if w.IntN(4) == 0 {
			at -= w.IntN(min(at, 4) + 1)
		}
		w.topic = slices.Insert(w.topic, at, u)
		if w.IntN(10) == 0 {
			w.topic = append(w.topic, u)
		}
	}
	if n := len(w.topic); w.IntN(3) == 0 { // a writer was stopped before it published
		from := w.IntN(n)
		u := w.topic[from]
		w.topic = slices.Insert(slices.Delete(w.topic, from, from+1), from+w.IntN(n-from), u)
	}
}

// tell has the ledger read the topic, in batches of any size.
func (w *world) tell(t *testing.T, s *Store, next int64) int64 {
	for rest := w.topic; len(rest) > 0; {
		if rest[0].Run == 0 {
			next, rest = name(t, s, next, rest[0].Era), rest[1:]
			continue
		}
		n := min(len(rest), 1+w.IntN(9))
		if i := slices.IndexFunc(rest, func(u *wire.LedgerUpdate) bool { return u.Run == 0 }); i >= 0 {
			n = min(n, i)
		}
		next, _ = feed(t, s, next, rest[:n]...)
		rest = rest[n:]
	}
	return next
}

// key names a change.
func key(u *wire.Update) string {
	return fmt.Sprintf("%d-%d %s %v %q %q %q", u.Run, u.Seq, u.OrderID, u.Op, u.Data, u.Given, u.Hiding.Text(u.Score))
}

// placeOf leaves the run out: two may have applied the same commands alike.
func placeOf(key string) string { return key[strings.IndexByte(key, '-')+1:] }

func (w *world) check(t *testing.T, s *Store) {
	t.Helper()
	wantProved(t, s, []*history{w.now.history})
	board := "'" + string(w.now.board) + "'"
	rows := func(from string) (all []string) {
		selectRows(t, s, "SELECT "+logColumns+" FROM "+from, func(row *sql.Rows) error {
			u, err := scanUpdate(row)
			if err == nil {
				all = append(all, key(u))
			}
			return err
		})
		return all
	}
	base := " AND run >= (SELECT base_run FROM rank_board WHERE board = " + board + " ORDER BY run DESC LIMIT 1)"
	want, got := []string{}, rows("rank_log WHERE board = "+board+base+" ORDER BY run, seq")
	for _, u := range w.now.path {
		want = append(want, placeOf(key(&u.Update)))
	}
	for i := range got {
		got[i] = placeOf(got[i])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rank_log (-want +got):\n%s", diff)
	}
	all := make(map[string]bool)
	for _, u := range w.topic {
		if u.Run == 0 {
			continue
		}
		all[key(&u.Update)] = true
	}
	for _, k := range append(rows("rank_log WHERE board = "+board), rows("rank_lost WHERE board = "+board)...) {
		delete(all, k)
	}
	if len(all) > 0 {
		t.Errorf("nowhere: %v", slices.Sorted(maps.Keys(all)))
	}
	_, err := s.judge(t.Context(), time.Now().Add(time.Hour), knows{})
	must(t, err)
	for _, k := range rows("rank_lost x WHERE state = 2 AND board = " + board + " AND EXISTS (SELECT 1 FROM rank_log l WHERE " + sameOrder + ")") {
		t.Errorf("%s is lost, and stands", k)
	}
}
