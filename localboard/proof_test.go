package localboard

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// history makes updates as the writer does: each carries the state after it.
type history struct {
	rng    *rand.Rand
	state  rankcache.State
	scores map[string]float64
	data   map[string]string // of some members: only those with an odd last digit ever have any
}

func newHistory(seed uint64) *history {
	return &history{rng: rand.New(rand.NewPCG(seed, 1)), state: rankcache.State{Run: 7, HasSum: true}, scores: map[string]float64{}, data: map[string]string{}}
}

func (h *history) clone() *history {
	c := newHistory(h.rng.Uint64())
	c.state = h.state
	maps.Copy(c.scores, h.scores)
	maps.Copy(c.data, h.data)
	return c
}

func (h *history) next(members int) wire.Update {
	member := fmt.Sprintf("user-%05d", h.rng.IntN(members))
	old, there := h.scores[member]
	u := wire.Update{Board: "b", Member: member, Op: wire.OpIncr, Delta: float64(h.rng.IntN(9) + 1)}
	if u.Score = old + u.Delta; there && h.rng.IntN(4) == 0 {
		u.Op = wire.OpDelete
	}
	if there {
		h.state.Sum -= wire.Hash(h.text(member), old)
	}
	switch odd := member[len(member)-1]%2 == 1; {
	case u.Op == wire.OpDelete || odd && h.rng.IntN(4) == 0:
		delete(h.data, member)
	case odd && h.rng.IntN(2) == 0:
		h.data[member] = fmt.Sprint("car ", h.rng.IntN(9))
	}
	if delete(h.scores, member); u.Op != wire.OpDelete {
		h.scores[member], u.Data = u.Score, h.data[member]
		h.state.Sum += wire.Hash(h.text(member), u.Score)
	}
	h.state.Sum &= wire.SumMask
	h.state.Seq++
	u.Run, u.Seq, u.Sum, u.HasSum, u.Members = h.state.Run, h.state.Seq, h.state.Sum, true, len(h.scores)
	return u
}

func (h *history) text(member string) string { return rankcache.JoinData(member, h.data[member]) }

func (h *history) some(n, members int) []wire.Update {
	us := make([]wire.Update, n)
	for i := range us {
		us[i] = h.next(members)
	}
	return us
}

func newProved(t *testing.T, h *history) *Board {
	t.Helper()
	b := New("b")
	b.SetRun(h.state.Run)
	b.Apply(h.some(3000, 800))
	b.Sum()
	if !b.Prove(h.state) {
		t.Fatalf("not proved: %v, want %v", b.Sum(), h.state)
	}
	return b
}

func TestSumIsThatOfTheMembersHoweverTheyCame(t *testing.T) {
	h := newHistory(1)
	b := New("b")
	b.SetRun(7)
	us := h.some(5000, 4000)
	h.rng.Shuffle(len(us), func(i, j int) { us[i], us[j] = us[j], us[i] })
	b.Apply(us[:1500])
	for range 40 { // changes and additions while the sum is being made
		b.mu.Lock()
		b.sumMore(&b.members, b.score, 20)
		b.mu.Unlock()
		b.Apply(us[1500:1550])
		us = append(us[:1500], us[1550:]...)
	}
	b.Apply(us[1500:])
	b.Publish()
	if got := b.Sum(); got != h.state.Sum {
		t.Errorf("got %x, want %x", got, h.state.Sum)
	}
	if b.Prove(rankcache.State{Run: 8, Seq: h.state.Seq, Sum: h.state.Sum, HasSum: true}) {
		t.Error("proved for another run")
	}
	if b.Prove(rankcache.State{Run: 7, Seq: h.state.Seq - 1, Sum: h.state.Sum, HasSum: true}) {
		t.Error("proved at a seq that it is beyond")
	}
	if !b.Prove(h.state) || b.State() != h.state {
		t.Errorf("not proved: %v", b.State())
	}
}

func TestSumSurvivesACompaction(t *testing.T) {
	h := newHistory(2)
	b := newProved(t, h)
	for range testkit.Sized(8, 30) {
		if done := b.Apply(h.some(500, 100_000)); done.Refuted {
			t.Fatal("refuted")
		}
		b.mu.Lock()
		compact(&b.writerState)
		b.mu.Unlock()
		b.Publish()
		if top := topOf(b); top.State != h.state {
			t.Fatalf("top shows %v, want %v", top.State, h.state)
		}
		h.checkData(t, b)
	}
}

// checkData compares the data that the published board shows, in its rows, its members and its snapshot.
func (h *history) checkData(t *testing.T, b *Board) {
	t.Helper()
	a := ask(b, rankcache.Query{Limit: 1 << 30, Members: []string{"user-00001", "user-00002"}})
	for _, e := range a.Entries {
		if a.Data.Of(e.Member) != h.data[e.Member] {
			t.Fatalf("%s has %q, want %q", e.Member, a.Data.Of(e.Member), h.data[e.Member])
		}
	}
	for _, own := range a.Own {
		if own.Data.Of(own.Member) != h.data[own.Member] {
			t.Fatalf("%s has %q, want %q", own.Member, own.Data.Of(own.Member), h.data[own.Member])
		}
	}
	if a.Data.Len() != len(h.data) {
		t.Fatalf("%d members have data, want %d", a.Data.Len(), len(h.data))
	}
	_, pieces := b.Snapshot()
	for piece := range pieces {
		for _, e := range piece {
			if m, _ := rankcache.SplitData(e.Member); e.Member != h.text(m) {
				t.Fatalf("snapshot has %q, want %q", e.Member, h.text(m))
			}
		}
	}
}

func TestLoadKeepsTheSum(t *testing.T) {
	h := newHistory(3)
	b := newProved(t, h)
	b.Relax()
	var entries []rankcache.Entry
	h.some(1000, 900)
	for m, s := range h.scores {
		entries = append(entries, rankcache.Entry{Member: h.text(m), Score: s})
	}
	if err := b.Load(h.state.Seq, entries); err != nil || b.Sum() != h.state.Sum || !b.Prove(h.state) {
		t.Errorf("%v: got %x, want %x", err, b.Sum(), h.state.Sum)
	}
	b.Publish()
	h.checkData(t, b)
	for _, m := range []string{"user-00001", "user-00003"} { // the same state with other data is published, too
		h.data[m] = "repaired"
	}
	entries = entries[:0]
	for m, s := range h.scores {
		entries = append(entries, rankcache.Entry{Member: h.text(m), Score: s})
	}
	b.Relax()
	if err := b.Load(h.state.Seq, entries); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(h.data, func(m, _ string) bool { _, on := h.scores[m]; return !on })
	b.Publish()
	h.checkData(t, b)
}

func TestUpdateOfAnotherHistoryIsRefuted(t *testing.T) {
	for name, wrong := range map[string]func(lost, true1 wire.Update) wire.Update{
		"lost write":      func(lost, _ wire.Update) wire.Update { return lost },
		"other data":      func(_, u wire.Update) wire.Update { u.Data += "x"; return u },
		"another score":   func(_, u wire.Update) wire.Update { u.Score++; return u },
		"another member":  func(_, u wire.Update) wire.Update { u.Member = "somebody"; return u },
		"without a sum":   func(_, u wire.Update) wire.Update { u.HasSum = false; return u },
		"not the next":    func(_, u wire.Update) wire.Update { u.Seq++; return u },
		"without a seq":   func(_, u wire.Update) wire.Update { u.Seq = 0; return u },
		"an earlier seq":  func(_, u wire.Update) wire.Update { u.Seq -= 5; return u },
		"removal instead": func(_, u wire.Update) wire.Update { u.Op = wire.OpDelete; return u },
	} {
		h := newHistory(4)
		b := newProved(t, h)
		b.Apply(h.some(100, 800))
		lost := h.clone()
		lost.next(800)
		before, next := b.State(), h.next(800)
		for next.Op != wire.OpIncr {
			b.Apply([]wire.Update{next})
			before, next = b.State(), h.next(800)
		}
		bad := wrong(lost.next(800), next)
		if name == "lost write" {
			bad.Seq = next.Seq
		}
		if done := b.Apply([]wire.Update{bad, next}); !done.Refuted || done.Applied != 0 || b.State() != before {
			t.Errorf("%s: %+v, %v after %v", name, done, b.State(), before)
		}
		if done := b.Apply([]wire.Update{next}); done.Applied != 1 || b.State() != h.state {
			t.Errorf("%s: what is true is not applied afterwards: %+v", name, done)
		}
	}
}

func TestRepeatsAreComparedWithTheRing(t *testing.T) {
	h := newHistory(5)
	b := newProved(t, h)
	us := h.some(5000, 800)
	b.Apply(us)
	if done := b.Apply(us[4000:]); done.Duplicate != 1000 || done.Refuted {
		t.Errorf("repeats: %+v", done)
	}
	zombie := us[4900]
	zombie.Sum++
	if done := b.Apply([]wire.Update{zombie}); !done.Refuted {
		t.Errorf("a different repeat: %+v", done)
	}
	for _, u := range []wire.Update{us[0], us[4999]} {
		if sum, known := b.SumAt(7, u.Seq); !known || sum != u.Sum {
			t.Errorf("seq %d: got %x, %v, want %x", u.Seq, sum, known, u.Sum)
		}
	}
	if _, known := b.SumAt(8, us[4999].Seq); known {
		t.Error("the sum of another run is known")
	}
}

func TestRingForgetsWhatIsOldAndKeepsTheLatest(t *testing.T) {
	r := newSumRing(100, 100)
	now := time.Unix(1000, 0)
	for n := uint64(101); n <= 20_000; n++ {
		r.add(n)
		if n%10 == 0 {
			now = now.Add(10 * time.Millisecond) // 1,000 a second
			r.forget(now)
		}
	}
	for _, seq := range []uint64{10_200, 15_000, 20_000} {
		if sum, known := r.at(seq); !known || sum != seq {
			t.Errorf("seq %d: got %d, %v", seq, sum, known)
		}
	}
	if _, known := r.at(9_500); known || len(r.sums) > 10_500 || len(r.marks) > 110 {
		t.Errorf("%d sums, %d marks are kept", len(r.sums), len(r.marks))
	}
	for range 3 {
		now = now.Add(time.Hour)
		r.forget(now)
		r.add(r.first + uint64(len(r.sums)))
	}
	if _, known := r.at(20_003 - ringLen + 1); !known || len(r.sums) > ringLen+2 {
		t.Errorf("%d sums are kept after an hour", len(r.sums))
	}
}
