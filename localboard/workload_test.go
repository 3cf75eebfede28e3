package localboard

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/wangjia184/sortedset"

	"rankcache/wire"
)

// write applies and publishes n updates every 10 ms, until stop is closed.
func (w *workload) write(b *Board, n int, stop <-chan struct{}) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for pick := w.picker(false); ; {
		select {
		case <-stop:
			return
		case <-tick.C:
			us := make([]wire.Update, n)
			for i := range us {
				us[i] = w.incr(pick())
			}
			b.Apply(us)
			b.Publish()
		}
	}
}

// workload makes the updates of a board, whose scores it keeps. It has no pointers per
// member, so that the garbage collector's work is that of the measured structure.
type workload struct {
	rand   *rand.Rand
	ids    string // of idLen bytes each
	scores []float64
	seq    uint64
}

const idLen = 8

// newWorkload returns n members of which the i-th has the score n / (i+1), so
// that half of them share the score 1.
func newWorkload(n int) *workload {
	w := &workload{rand: rand.New(rand.NewPCG(1, 2)), scores: make([]float64, n)}
	var ids []byte
	for i, id := range w.rand.Perm(n) {
		ids = strconv.AppendInt(ids, 10_000_000+7*int64(id), 10)
		w.scores[i] = float64(n / (i + 1))
	}
	w.ids = string(ids)
	return w
}

func (w *workload) n() int { return len(w.scores) }

func (w *workload) id(i int) string { return w.ids[idLen*i:][:idLen] }

// picker returns a function that picks a member: hot ones more often, or all
// alike.
func (w *workload) picker(zipf bool) func() int {
	if !zipf {
		return func() int { return w.rand.IntN(w.n()) }
	}
	z := rand.NewZipf(w.rand, 1.1, 1, uint64(w.n()-1))
	return func() int { return int(z.Uint64()) }
}

func (w *workload) incr(i int) wire.Update {
	w.scores[i]++
	w.seq++
	return wire.Update{Member: w.id(i), Op: wire.OpIncr, Delta: 1, Score: w.scores[i], Seq: w.seq}
}

// log returns n updates, about half of which name a member for the first time
// where there are that many.
func (w *workload) log(n int) []wire.Update {
	us := make([]wire.Update, n)
	zipf, uniform := w.picker(true), w.picker(false)
	for i := range us {
		if i%2 == 0 {
			us[i] = w.incr(zipf())
		} else {
			us[i] = w.incr(uniform())
		}
	}
	return us
}

func (w *workload) fill(b *Board) {
	for i, score := range w.scores {
		w.seq++
		b.Apply([]wire.Update{{Member: w.id(i), Op: wire.OpSet, Score: score, Seq: w.seq}})
	}
}

func (w *workload) board() *Board {
	b := New("b")
	w.fill(b)
	b.Publish()
	return b
}

// update applies and publishes n updates in batches.
func (w *workload) update(b *Board, n int, pick func() int) {
	us := make([]wire.Update, benchBatch)
	for range n / benchBatch {
		for i := range us {
			us[i] = w.incr(pick())
		}
		b.Apply(us)
		b.Publish()
	}
}

func (w *workload) sortedset() *sortedset.SortedSet {
	s := sortedset.New()
	for i, score := range w.scores {
		s.AddOrUpdate(w.id(i), sortedset.SCORE(score), nil)
	}
	return s
}

// report gives the bytes of a structure per member, above those of the id, which
// the board copies and the sorted set shares.
func (w *workload) report(b *testing.B, name string, bytes, ids int) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(bytes)/float64(w.n())-float64(ids), name+"-B/member")
}
