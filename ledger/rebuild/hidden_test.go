package rebuild

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// A board that is born with members hidden in all the class has them after a rebuild, too: those that the ledger knows nothing of, and
// those with points that were never seen.
func TestBornWithHiddenMembers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, testkit.SQLKinds[0], single).of("hides-day", "9")
	list := f.opts.Names.HiddenListKey("hides-day")
	must(t, f.redis.HSet(t.Context(), list, "unknown", 7, "known", 8, "other", 9, "back", "10 -").Err())
	for i, m := range []string{"a", "known", "other", "back"} {
		f.give(t, fmt.Sprint("o", i), m, `"op":"incr","delta":3`)
	}
	f.move(t, wire.OpRestore, "other", 50)
	want, hidden := map[string]float64{"a": 3, "back": 3, "other": 3}, map[string]string{"unknown": "7 -", "known": "8 3", "other": "50"}
	f.settle(t)
	before := f.state(t)
	equal(t, "hidden", f.hidden(t), hidden)
	for range 2 {
		f.lose(t)
		_, err := f.Rebuild(t.Context(), f.board)
		must(t, err)
		f.wantRebuilt(t, want, before)
		equal(t, "hidden after the rebuild", f.hidden(t), hidden)
	}
	f.move(t, wire.OpRestore, "known", 60)
	f.move(t, wire.OpRestore, "unknown", 60)
	want["known"] = 3
	equal(t, "restored", f.scores(t), want)
	f.wantProved(t)
}

// A board with hidden members whose class may have none any more is not rebuilt, and says why.
func TestHiddenMembersThatMayNotBe(t *testing.T) {
	t.Parallel()
	f := newFixture(t, testkit.SQLKinds[0], single).of("hides", "1")
	f.give(t, "o1", "m", `"op":"incr","delta":3`)
	f.move(t, wire.OpHide, "m", 5)
	f.settle(t)
	rules := f.opts.Rules(f.board)
	rules.Data = true
	other := New(f.opts)
	other.opts.Rules = func(rankcache.BoardID) Rules { return rules }
	if _, err := other.Rebuild(t.Context(), f.board); err == nil || !strings.Contains(err.Error(), "hidden") {
		t.Error(err)
	}
}

// Commands, hides, restores and repeats of each in any order, boards that are rebuilt, and boards that are lost and rebuilt: Redis
// and the ledger have what an oracle has after each, and order ids stay known.
func TestHidesInAnyOrder(t *testing.T) {
	t.Parallel()
	seeds, steps := testkit.Sized(2, 8), testkit.Sized(60, 200)
	f := newFixture(t, testkit.SQLKinds[0], single)
	for seed := range seeds {
		for _, class := range []string{"hides", "hides-ties"} {
			t.Run(fmt.Sprint(class, "-", seed), func(t *testing.T) {
				o := &oracle{Rand: rand.New(rand.NewPCG(uint64(seed), 2)), fixture: f.of(class, fmt.Sprint("s", seed)), members: make(map[string]*kept)}
				o.command(t)
				o.settle(t) // so that the ledger has the board
				for range steps {
					o.step(t)
					if t.Failed() {
						return
					}
				}
				o.check(t)
				o.wantRepeats(t)
				o.wantProved(t)
			})
		}
	}
}

// oracle is what members of a board should have.
type oracle struct {
	*rand.Rand
	*fixture
	members map[string]*kept
	serial  uint64
	n       int // commands
}

// kept is what a member has.
type kept struct {
	scored, hidden bool
	score          float64 // shown
	serial         uint64
}

func (o *oracle) step(t *testing.T) {
	t.Helper()
	switch o.IntN(20) {
	case 0:
		_, err := o.Rebuild(t.Context(), o.board)
		must(t, err)
		o.check(t)
	case 1:
		o.settle(t)
		o.lose(t)
		_, err := o.Rebuild(t.Context(), o.board)
		must(t, err)
		o.check(t)
	case 2, 3:
		again := o.orders[o.IntN(len(o.orders))]
		if status, answer := o.post(again.command); status != http.StatusOK || repeated(answer) != repeated(again.answer) {
			t.Errorf("a repeat of %s is answered %d %s, want %s", again.command, status, answer, again.answer)
		}
	case 4, 5, 6, 7, 8:
		o.hideOrRestore(t)
	default:
		o.command(t)
	}
}

// member returns one of a few.
func (o *oracle) member() (string, *kept) {
	m := fmt.Sprint("m", o.IntN(6))
	if o.members[m] == nil {
		o.members[m] = &kept{}
	}
	return m, o.members[m]
}

func (o *oracle) hideOrRestore(t *testing.T) {
	t.Helper()
	m, k := o.member()
	o.serial += 10
	op, serial := wire.OpHide+wire.Op(o.IntN(2)), o.serial
	if o.IntN(3) == 0 { // one that comes late
		serial = 1 + uint64(o.n)*10 + 5
	}
	o.n++
	o.move(t, op, m, serial)
	if serial > k.serial {
		k.serial, k.hidden = serial, op == wire.OpHide
	}
}

func (o *oracle) command(t *testing.T) {
	t.Helper()
	m, k := o.member()
	number := float64(o.IntN(100))
	o.n++
	id := fmt.Sprint("o", o.n)
	switch o.IntN(6) {
	case 0:
		o.give(t, id, m, `"op":"delete"`)
		k.scored, k.score = false, 0
	case 1:
		o.give(t, id, m, fmt.Sprintf(`"op":"set","score":%v`, number))
		k.scored, k.score = true, number
	default:
		o.give(t, id, m, fmt.Sprintf(`"op":"incr","delta":%v`, number))
		k.scored, k.score = true, k.score+number
	}
}

// check compares Redis with the oracle.
func (o *oracle) check(t *testing.T) {
	t.Helper()
	form := o.file.Class(o.class).Form
	got, want := make(map[string]kept), make(map[string]kept)
	for member, raw := range o.scores(t) {
		got[member] = kept{scored: true, score: form.Shown(raw)}
	}
	for member, value := range o.fixture.hidden(t) {
		v, raw, _ := wire.ParseHidden(value)
		k := got[member]
		if k.serial, k.hidden = v.Serial, v.Hidden; v.Hidden && !v.Bare {
			k.scored, k.score = true, form.Shown(raw)
		}
		got[member] = k
	}
	for member, k := range o.members {
		if *k != (kept{}) {
			want[member] = *k
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for member, k := range want {
		if got[member] != k {
			t.Errorf("%s: %+v, want %+v", member, got[member], k)
		}
	}
}

// Members are hidden while no ledger runs, and Redis is emptied once it has caught up: who is hidden is, and its points come back.
func TestHiddenWhileTheLedgerIsBehind(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	f := l.of("hides", "1")
	f.give(t, "o1", "m", `"op":"incr","delta":3`)
	f.settle(t)
	l.stop()
	f.move(t, wire.OpHide, "m", 5)
	f.give(t, "o2", "m", `"op":"incr","delta":4`)
	f.give(t, "o3", "n", `"op":"incr","delta":1`)
	l.startLedger(t)
	f.wantProved(t)
	l.forget(t)
	life := l.life(t)
	must(t, l.redis.FlushAll(t.Context()).Err())
	f.give(t, "o4", "m", `"op":"incr","delta":5`) // waits for the rebuild
	l.awaitWhole(t, life)
	equal(t, "scores", f.scores(t), map[string]float64{"n": 1})
	equal(t, "hidden", f.hidden(t), map[string]string{"m": "5 12"})
	f.wantRepeats(t)
	f.move(t, wire.OpRestore, "m", 6)
	equal(t, "restored", f.scores(t), map[string]float64{"m": 12, "n": 1})
	f.wantProved(t)
}
