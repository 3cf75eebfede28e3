package replay

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/localboard"
	"rankcache/wire"
)

// history of one board as Redis lives it: what it says at each seq.
type life struct {
	*rand.Rand
	scores  map[string]float64
	updates []wire.Update
}

func (l *life) write() {
	u := wire.Update{Op: wire.OpSet, Member: fmt.Sprint("m", l.IntN(80)), Score: float64(l.IntN(30)), Seq: uint64(len(l.updates) + 1)}
	if l.scores[u.Member] = u.Score; l.IntN(4) == 0 {
		u.Op = wire.OpDelete
		delete(l.scores, u.Member)
	}
	l.updates = append(l.updates, u)
}

// says is all that Redis says now: every row with its rank, and some members that
// may be absent.
func (l *life) says() *testimony {
	t := &testimony{Stamp: rankcache.Stamp{Seq: uint64(len(l.updates)), Members: len(l.scores)}}
	for m, score := range l.scores {
		t.claims = append(t.claims, claim{m, score, true, 0})
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

// A board that is right, and further than what Redis said by updates that came in
// any order, is never found wrong.
func TestJudgeNoFalseAlarm(t *testing.T) {
	l := &life{Rand: rand.New(rand.NewPCG(5, 6)), scores: map[string]float64{}}
	board := localboard.New("b")
	g := &gate{f: newFollower("b", "", board, newMetrics(), time.Now())}
	applied, judged := 0, 0
	for range 3000 {
		for range l.IntN(6) {
			l.write()
		}
		heard := l.says()
		for range l.IntN(40) {
			l.write()
		}
		// What was written before comes, and some of what was written since.
		board.Apply(l.updates[applied:heard.Seq])
		applied = int(heard.Seq)
		later := slices.Clone(l.updates[applied:])
		l.Shuffle(len(later), func(i, j int) { later[i], later[j] = later[j], later[i] })
		for i := range later[:l.IntN(len(later)+1)] {
			board.Apply(later[i : i+1])
			if l.IntN(3) == 0 {
				board.Publish()
			}
		}
		board.Publish()
		if wrong := g.judge(heard); len(wrong) > 0 {
			t.Fatalf("at %d: %+v", heard.Seq, wrong)
		}
		judged += len(heard.claims)
	}
	t.Logf("%d claims", judged)
}

// Each kind of difference is found, when nothing else is going on.
func TestJudgeFinds(t *testing.T) {
	for kind, change := range map[string]func(*localboard.Board, uint64, *testimony){
		kindScore:   func(b *localboard.Board, seq uint64, _ *testimony) { b.Repair("m1", 77, true, seq) },
		kindMissing: func(b *localboard.Board, seq uint64, _ *testimony) { b.Repair("m1", 0, false, seq) },
		kindExtra: func(b *localboard.Board, seq uint64, heard *testimony) {
			b.Repair("stranger", 1, true, seq)
			heard.claims = append(heard.claims, claim{member: "stranger"})
		},
		kindMembers: func(b *localboard.Board, seq uint64, _ *testimony) { b.Repair("stranger", -1, true, seq) },
		kindRank:    func(b *localboard.Board, seq uint64, _ *testimony) { b.Repair("stranger", 100, true, seq) },
	} {
		l := &life{Rand: rand.New(rand.NewPCG(7, 8)), scores: map[string]float64{}}
		for len(l.updates) < 500 || l.scores["m1"] == 0 {
			l.write()
		}
		board := localboard.New("b")
		g := &gate{f: newFollower("b", "", board, newMetrics(), time.Now())}
		board.Apply(l.updates)
		heard := l.says()
		change(board, heard.Seq, heard)
		board.Publish()
		if wrong := g.judge(heard); !slices.ContainsFunc(wrong, func(d difference) bool { return d.kind == kind }) {
			t.Errorf("%s: found %+v", kind, wrong)
		}
	}
}
