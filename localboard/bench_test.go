package localboard

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/wangjia184/sortedset"

	"rankcache"
	"rankcache/wire"
)

// Sizes of the boards measured: a popular room, a very popular one, and more
// than anybody has asked for.
var benchSizes = []int{57_000, 210_000, 1_000_000}

// benchBatch is how many updates are applied between two publications.
const benchBatch = 250

// BenchmarkSet compares a board with wangjia184/sortedset, the set that services
// of this kind commonly embed, which has no publication: it needs a lock around
// every call that is not counted here.
func BenchmarkSet(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.Run("localboard", func(b *testing.B) { // one at a time: each pays for its own garbage
				e := newEvening(n)
				benchOurs(b, e, e.board())
			})
			b.Run("sortedset", func(b *testing.B) {
				e := newEvening(n)
				benchTheirs(b, e, e.sortedset())
			})
		})
	}
}

func benchOurs(b *testing.B, e *evening, board *Board) {
	b.Run("incr-zipf", func(b *testing.B) { benchIncr(b, e, board, true) })
	b.Run("incr-uniform", func(b *testing.B) { benchIncr(b, e, board, false) })
	benchReads(b, e, board)
}

func benchTheirs(b *testing.B, e *evening, set *sortedset.SortedSet) {
	b.Run("incr-zipf", func(b *testing.B) { benchIncrTheirs(b, e, set, true) })
	b.Run("incr-uniform", func(b *testing.B) { benchIncrTheirs(b, e, set, false) })
	benchReadsTheirs(b, e, set)
}

func benchIncr(b *testing.B, e *evening, board *Board, zipf bool) {
	us := make([]wire.Update, 0, benchBatch)
	pick := e.picker(zipf)
	e.live(board, 100*benchBatch, pick) // until the chunks are filled as they are in use
	defer cpu(b)()
	for b.Loop() {
		us = append(us, e.incr(pick()))
		if len(us) == benchBatch {
			board.Apply(us)
			board.Publish()
			us = us[:0]
		}
	}
	board.Apply(us)
	board.Publish()
}

func benchIncrTheirs(b *testing.B, e *evening, set *sortedset.SortedSet, zipf bool) {
	pick := e.picker(zipf)
	defer cpu(b)()
	for b.Loop() {
		u := e.incr(pick())
		set.AddOrUpdate(u.Member, sortedset.SCORE(u.Score), nil)
	}
}

func benchReads(b *testing.B, e *evening, board *Board) {
	pick := e.picker(false)
	b.Run("top50", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			sink(board.Top().Entries[:50])
		}
	})
	b.Run("page50-deep", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			sink(board.Page(e.n()/2, 50, rankcache.Descending).Entries)
		}
	})
	b.Run("standing", func(b *testing.B) {
		defer cpu(b)()
		one, dst := make([]string, 1), make([]rankcache.Standing, 0, 1)
		for b.Loop() {
			one[0] = e.id(pick())
			dst, _ = board.Standings(dst[:0], one, rankcache.Descending)
		}
	})
	b.Run("around4", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			page, _, _ := board.Around(e.id(pick()), 4, rankcache.Descending)
			sink(page.Entries)
		}
	})
}

func benchReadsTheirs(b *testing.B, e *evening, set *sortedset.SortedSet) {
	pick := e.picker(false)
	b.Run("top50", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			sink(set.GetByRankRange(-1, -50, false))
		}
	})
	b.Run("page50-deep", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			sink(set.GetByRankRange(-e.n()/2, -e.n()/2-49, false))
		}
	})
	b.Run("standing", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			set.FindRank(e.id(pick()))
		}
	})
	b.Run("around4", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			r := set.FindRank(e.id(pick()))
			sink(set.GetByRankRange(max(1, r-4), r+4, false))
		}
	})
}

// BenchmarkPublish is an update of an open board of 210,000, applied and
// published together with others: with 50 of them as at 5,000 a second and a
// publication every 10 ms, with 500 as at 50,000, with 2,500 as of a writer that
// catches up.
func BenchmarkPublish(b *testing.B) {
	e := newEvening(210_000)
	board, pick := e.board(), e.picker(true)
	for _, n := range []int{50, 500, 2500} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			us := make([]wire.Update, 0, n)
			defer cpu(b)()
			for b.Loop() {
				if us = append(us, e.incr(pick())); len(us) == n {
					board.Apply(us)
					board.Publish()
					us = us[:0]
				}
			}
		})
	}
}

// BenchmarkStandingCold is a standing as a server's is: between two of them other
// work takes the core's cache, here 16 KiB of it. idle is that work alone.
func BenchmarkStandingCold(b *testing.B) {
	const line = 64
	e := newEvening(210_000)
	board, pick := e.board(), e.picker(false)
	one, dst, other := make([]string, 1), make([]rankcache.Standing, 0, 1), make([]byte, 1<<20)
	for _, idle := range []bool{true, false} {
		b.Run(map[bool]string{true: "idle", false: "standing"}[idle], func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				for at := range 16 << 10 / line {
					other[(i<<14+at*line)%len(other)]++
				}
				one[0] = e.id(pick())
				if !idle {
					dst, _ = board.Standings(dst[:0], one, rankcache.Descending)
				}
			}
		})
	}
}

// BenchmarkStandingLive reads standings while 50,000 updates a second are applied
// and published every 10 ms, and while nothing is, for comparison. The writer's
// processor time is not in ns/op, but what it does to the reader is.
func BenchmarkStandingLive(b *testing.B) {
	for _, writing := range []bool{false, true} {
		b.Run(map[bool]string{false: "quiet", true: "writing"}[writing], func(b *testing.B) {
			e := newEvening(210_000)
			board := e.board()
			stop, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				if writing {
					e.write(board, stop)
				}
			}()
			readStandings(b, board, newEvening(210_000)) // the writer's evening is its own
			close(stop)
			<-done
		})
	}
}

// write applies and publishes 500 updates every 10 ms, until stop is closed.
func (e *evening) write(b *Board, stop <-chan struct{}) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for pick := e.picker(false); ; {
		select {
		case <-stop:
			return
		case <-tick.C:
			e.live(b, 2*benchBatch, pick)
		}
	}
}

// readStandings reports the median and the slow ones beside the mean.
func readStandings(b *testing.B, board *Board, e *evening) {
	pick, one, dst := e.picker(false), make([]string, 1), make([]rankcache.Standing, 0, 1)
	took := make([]time.Duration, 0, 1<<20)
	for b.Loop() {
		one[0] = e.id(pick())
		start := time.Now()
		dst, _ = board.Standings(dst[:0], one, rankcache.Descending)
		if len(took) < cap(took) {
			took = append(took, time.Since(start))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
	b.ReportMetric(float64(took[len(took)*999/1000]), "p99.9-ns")
}

// BenchmarkReplay is the filling of a board: updates applied in batches, no
// order kept, the ids known and unknown as they come.
func BenchmarkReplay(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			e := newEvening(n)
			us := e.log(1_000_000)
			b.ResetTimer()
			defer cpu(b)()
			board := New("b")
			for i := 0; i < b.N; i += benchBatch {
				if i%len(us) == 0 {
					board = New("b")
				}
				board.Apply(us[i%len(us):][:benchBatch])
			}
		})
	}
}

// BenchmarkBuild is the first publication: the sort of the whole board.
func BenchmarkBuild(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			e := newEvening(n)
			board := New("b")
			e.fill(board)
			defer cpu(b)()
			for b.Loop() {
				board.order, board.moved = nil, true
				board.Publish()
			}
		})
	}
}

// BenchmarkMemory reports the heap that a board holds, per member and above the
// ids' own bytes: when just opened, and after as many updates as it has members.
func BenchmarkMemory(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(strconv.Itoa(n)+"/localboard", func(b *testing.B) {
			e := newEvening(n)
			before := heap()
			board := e.board()
			e.report(b, "open", heap()-before, idLen)
			e.report(b, "estimate", board.Bytes(), idLen)
			e.live(board, n, e.picker(false))
			e.report(b, "live", heap()-before, idLen)
			runtime.KeepAlive(board)
			runtime.KeepAlive(e)
		})
		b.Run(strconv.Itoa(n)+"/sortedset", func(b *testing.B) {
			e := newEvening(n)
			before := heap()
			set := e.sortedset()
			e.report(b, "open", heap()-before, 0)
			runtime.KeepAlive(set)
			runtime.KeepAlive(e)
		})
	}
}

// cpu begins to measure, and returns a function that reports the processor time
// of the whole process per operation, the collector's included: on a machine that
// is shared, the figure to compare.
func cpu(b *testing.B) func() {
	b.ReportAllocs()
	before := cpuTime()
	return func() { b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op") }
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// sink keeps a result from being optimised away.
func sink[T any](v T) { runtime.KeepAlive(v) }

// evening makes the updates of a board: members with the scores that they have.
// It holds no pointers, so that the collector's work is the measured thing's.
type evening struct {
	rand   *rand.Rand
	ids    string // of idLen bytes each
	scores []float64
	seq    uint64
}

const idLen = 8

// newEvening returns n members of which the i-th has given n / (i+1) gifts, so
// that half of them share the score 1.
func newEvening(n int) *evening {
	e := &evening{rand: rand.New(rand.NewPCG(1, 2)), scores: make([]float64, n)}
	var ids []byte
	for i, id := range e.rand.Perm(n) {
		ids = strconv.AppendInt(ids, 10_000_000+7*int64(id), 10)
		e.scores[i] = float64(n / (i + 1))
	}
	e.ids = string(ids)
	return e
}

func (e *evening) n() int { return len(e.scores) }

func (e *evening) id(i int) string { return e.ids[idLen*i:][:idLen] }

// picker returns a function that picks a member: hot ones more often, or all
// alike.
func (e *evening) picker(zipf bool) func() int {
	if !zipf {
		return func() int { return e.rand.IntN(e.n()) }
	}
	z := rand.NewZipf(e.rand, 1.1, 1, uint64(e.n()-1))
	return func() int { return int(z.Uint64()) }
}

func (e *evening) incr(i int) wire.Update {
	e.scores[i]++
	e.seq++
	return wire.Update{Member: e.id(i), Op: wire.OpIncr, Delta: 1, Score: e.scores[i], Seq: e.seq}
}

// log returns n updates, about half of which name a member for the first time
// where there are that many.
func (e *evening) log(n int) []wire.Update {
	us := make([]wire.Update, n)
	zipf, uniform := e.picker(true), e.picker(false)
	for i := range us {
		if i%2 == 0 {
			us[i] = e.incr(zipf())
		} else {
			us[i] = e.incr(uniform())
		}
	}
	return us
}

func (e *evening) fill(b *Board) {
	for i, score := range e.scores {
		e.seq++
		b.Apply([]wire.Update{{Member: e.id(i), Op: wire.OpSet, Score: score, Seq: e.seq}})
	}
}

func (e *evening) board() *Board {
	b := New("b")
	e.fill(b)
	b.Publish()
	return b
}

// live applies n updates as they come while a board is open.
func (e *evening) live(b *Board, n int, pick func() int) {
	us := make([]wire.Update, benchBatch)
	for range n / benchBatch {
		for i := range us {
			us[i] = e.incr(pick())
		}
		b.Apply(us)
		b.Publish()
	}
}

func (e *evening) sortedset() *sortedset.SortedSet {
	s := sortedset.New()
	for i, score := range e.scores {
		s.AddOrUpdate(e.id(i), sortedset.SCORE(score), nil)
	}
	return s
}

// report gives the bytes of a structure per member, above those of the id, which
// the board copies and the sorted set shares.
func (e *evening) report(b *testing.B, name string, bytes, ids int) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(bytes)/float64(e.n())-float64(ids), name+"-B/member")
}
