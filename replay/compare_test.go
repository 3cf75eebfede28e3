package replay

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"rankcache"
	"rankcache/localboard"
	"rankcache/wire"
)

// originBoard is one board in Redis, with its updates.
type originBoard struct {
	*rand.Rand
	scores  map[string]float64
	updates []wire.Update
}

func (o *originBoard) write() {
	u := wire.Update{Op: wire.OpSet, Member: fmt.Sprint("m", o.IntN(80)), Score: float64(o.IntN(30)), Seq: uint64(len(o.updates) + 1)}
	if o.scores[u.Member] = u.Score; o.IntN(4) == 0 {
		u.Op = wire.OpDelete
		delete(o.scores, u.Member)
	}
	o.updates = append(o.updates, u)
}

// observe returns all that Redis has now: every row with its rank, and some members
// that may be absent.
func (o *originBoard) observe() *observation {
	t := &observation{Stamp: rankcache.Stamp{State: rankcache.State{Seq: uint64(len(o.updates))}, Members: len(o.scores)}}
	for m, score := range o.scores {
		t.claims = append(t.claims, claim{member: m, score: score, there: true})
	}
	slices.SortFunc(t.claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(b.member, a.member))
	})
	for i := range t.claims {
		t.claims[i].rank = i + 1
	}
	for i := range 80 {
		if m := fmt.Sprint("m", i); !slices.ContainsFunc(t.claims, func(c claim) bool { return c.member == m }) {
			t.claims = append(t.claims, claim{member: m})
		}
	}
	return t
}

// A board that is right, and ahead of the observation by updates that came in
// any order, is never found wrong.
func TestComparingNoFalseAlarm(t *testing.T) {
	o := &originBoard{Rand: rand.New(rand.NewPCG(5, 6)), scores: map[string]float64{}}
	board := localboard.New("b")
	c := &comparer{replica: &replica{board: board}}
	applied, compared := 0, 0
	for range 3000 {
		for range o.IntN(6) {
			o.write()
		}
		observed := o.observe()
		for range o.IntN(40) {
			o.write()
		}
		// What was written before comes, and some of what was written since.
		board.Apply(o.updates[applied:observed.Seq])
		applied = int(observed.Seq)
		later := slices.Clone(o.updates[applied:])
		o.Shuffle(len(later), func(i, j int) { later[i], later[j] = later[j], later[i] })
		for i := range later[:o.IntN(len(later)+1)] {
			board.Apply(later[i : i+1])
			if o.IntN(3) == 0 {
				board.Publish()
			}
		}
		board.Publish()
		if wrong := c.differences(observed); len(wrong) > 0 {
			t.Fatalf("at %d: %+v", observed.Seq, wrong)
		}
		compared += len(observed.claims)
	}
	t.Logf("%d claims", compared)
}

// Each kind of difference is found, when nothing else is going on.
func TestComparingFinds(t *testing.T) {
	for kind, change := range map[string]func([]wire.Update, *observation) []wire.Update{
		kindScore:   func(us []wire.Update, _ *observation) []wire.Update { return changed(us, "m1", wire.OpSet) },
		kindMissing: func(us []wire.Update, _ *observation) []wire.Update { return changed(us, "m1", wire.OpDelete) },
		kindExtra: func(us []wire.Update, observed *observation) []wire.Update {
			observed.claims = append(observed.claims, claim{member: "stranger"})
			return changed(us, "stranger", wire.OpSet)
		},
		kindData: func(us []wire.Update, observed *observation) []wire.Update {
			for i := range observed.claims {
				if observed.claims[i].member == "m1" {
					observed.claims[i].data = "car"
				}
			}
			return us
		},
		kindMembers: func(us []wire.Update, _ *observation) []wire.Update { return changed(us, "stranger", wire.OpSet) },
		kindRank:    func(us []wire.Update, _ *observation) []wire.Update { return changed(us, "stranger", wire.OpSet) },
	} {
		o := &originBoard{Rand: rand.New(rand.NewPCG(7, 8)), scores: map[string]float64{}}
		for len(o.updates) < 500 || o.scores["m1"] == 0 {
			o.write()
		}
		observed := o.observe()
		board := localboard.New("b")
		board.Apply(change(slices.Clone(o.updates), observed))
		board.Publish()
		c := &comparer{replica: &replica{board: board}}
		if wrong := c.differences(observed); !slices.ContainsFunc(wrong, func(d difference) bool { return d.kind == kind }) {
			t.Errorf("%s: found %+v", kind, wrong)
		}
	}
}

// changed returns updates that give a member another last state: by its own last
// update, or by one of a member that is not on the board any more.
func changed(us []wire.Update, member string, op wire.Op) []wire.Update {
	for i := len(us) - 1; i >= 0; i-- {
		if member == "stranger" && us[i].Op == wire.OpDelete || us[i].Member == member {
			us[i].Member, us[i].Op, us[i].Score = member, op, 77
			return us
		}
	}
	panic("no such update")
}
