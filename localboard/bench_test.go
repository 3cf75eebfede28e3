package localboard

import (
	"fmt"
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

// Sizes of the boards measured: a popular room, a very popular one, and more than
// has been requested.
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
				w := newWorkload(n)
				benchBoard(b, w, w.board())
			})
			b.Run("sortedset", func(b *testing.B) {
				w := newWorkload(n)
				benchSortedSet(b, w, w.sortedset())
			})
		})
	}
}

func benchBoard(b *testing.B, w *workload, board *Board) {
	b.Run("incr-zipf", func(b *testing.B) { benchIncr(b, w, board, true) })
	b.Run("incr-uniform", func(b *testing.B) { benchIncr(b, w, board, false) })
	benchReads(b, w, board)
}

func benchSortedSet(b *testing.B, w *workload, set *sortedset.SortedSet) {
	b.Run("incr-zipf", func(b *testing.B) { benchIncrSortedSet(b, w, set, true) })
	b.Run("incr-uniform", func(b *testing.B) { benchIncrSortedSet(b, w, set, false) })
	benchReadsSortedSet(b, w, set)
}

func benchIncr(b *testing.B, w *workload, board *Board, zipf bool) {
	us := make([]wire.Update, 0, benchBatch)
	pick := w.picker(zipf)
	w.update(board, 100*benchBatch, pick) // until the leaves are as full as in use
	defer cpu(b)()
	for b.Loop() {
		us = append(us, w.incr(pick()))
		if len(us) == benchBatch {
			board.Apply(us)
			board.Publish()
			us = us[:0]
		}
	}
	board.Apply(us)
	board.Publish()
}

func benchIncrSortedSet(b *testing.B, w *workload, set *sortedset.SortedSet, zipf bool) {
	pick := w.picker(zipf)
	defer cpu(b)()
	for b.Loop() {
		u := w.incr(pick())
		set.AddOrUpdate(u.Member, sortedset.SCORE(u.Score), nil)
	}
}

func benchReads(b *testing.B, w *workload, board *Board) {
	pick := w.picker(false)
	b.Run("top50", func(b *testing.B) {
		defer cpu(b)()
		r := newReads(rankcache.Query{Limit: 50})
		for b.Loop() {
			sink(r.read(board).Entries)
		}
	})
	b.Run("page50-deep", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			sink(page(board, w.n()/2, 50, rankcache.Descending).Entries)
		}
	})
	b.Run("standing", func(b *testing.B) {
		defer cpu(b)()
		r := newReads(rankcache.Query{Members: make([]string, 1)})
		for b.Loop() {
			r.qs[0].Members[0] = w.id(pick())
			r.read(board)
		}
	})
	b.Run("around4", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			page, _, _ := around(board, w.id(pick()), 4, rankcache.Descending)
			sink(page.Entries)
		}
	})
}

func benchReadsSortedSet(b *testing.B, w *workload, set *sortedset.SortedSet) {
	pick := w.picker(false)
	b.Run("top50", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			sink(set.GetByRankRange(-1, -50, false))
		}
	})
	b.Run("page50-deep", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			sink(set.GetByRankRange(-w.n()/2, -w.n()/2-49, false))
		}
	})
	b.Run("standing", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			set.FindRank(w.id(pick()))
		}
	})
	b.Run("around4", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			r := set.FindRank(w.id(pick()))
			sink(set.GetByRankRange(max(1, r-4), r+4, false))
		}
	})
}

// BenchmarkPublish is an update of an open board, applied and published together with
// others: with 50 of them as at 5,000 a second and a publication every 10 ms, with
// 500 as at 50,000, with 2,500 as of a writer that catches up.
func BenchmarkPublish(b *testing.B) {
	for _, members := range []int{3000, 10_000, 30_000, 100_000, 210_000, 1_000_000} {
		w := newWorkload(members)
		board := w.board()
		for _, zipf := range []bool{true, false} {
			for _, n := range []int{50, 500, 2500} {
				b.Run(fmt.Sprintf("%d/%d/zipf=%t", members, n, zipf), func(b *testing.B) { benchPublish(b, w, board, n, zipf) })
			}
		}
	}
}

func benchPublish(b *testing.B, w *workload, board *Board, n int, zipf bool) {
	us, pick := make([]wire.Update, 0, n), w.picker(zipf)
	defer cpu(b)()
	for b.Loop() {
		if us = append(us, w.incr(pick())); len(us) == n {
			board.Apply(us)
			board.Publish()
			us = us[:0]
		}
	}
}

// BenchmarkStandingCold is a standing as a server's is: between two of them other
// work fills the core's cache, here 16 KiB of it. idle is that work alone.
func BenchmarkStandingCold(b *testing.B) {
	const line = 64
	w := newWorkload(210_000)
	board, pick := w.board(), w.picker(false)
	r, other := newReads(rankcache.Query{Members: make([]string, 1)}), make([]byte, 1<<20)
	for _, idle := range []bool{true, false} {
		b.Run(map[bool]string{true: "idle", false: "standing"}[idle], func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				for at := range 16 << 10 / line {
					other[(i<<14+at*line)%len(other)]++
				}
				r.qs[0].Members[0] = w.id(pick())
				if !idle {
					r.read(board)
				}
			}
		})
	}
}

// BenchmarkStandingLive reads standings while 5,000 and 50,000 updates a second are applied
// and published every 10 ms, and while nothing is, for comparison. The writer's
// processor time is not in ns/op, but what it does to the reader is.
func BenchmarkStandingLive(b *testing.B) {
	for _, rate := range []int{0, 5_000, 50_000} {
		b.Run(strconv.Itoa(rate), func(b *testing.B) {
			w := newWorkload(210_000)
			board := w.board()
			stop, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				if rate > 0 {
					w.write(board, rate/100, stop)
				}
			}()
			readStandings(b, board, newWorkload(210_000)) // the writer has a workload of its own
			close(stop)
			<-done
		})
	}
}

// readStandings reports the median and the slow ones beside the mean.
func readStandings(b *testing.B, board *Board, w *workload) {
	pick, r := w.picker(false), newReads(rankcache.Query{Members: make([]string, 1)})
	took := make([]time.Duration, 0, 1<<20)
	for b.Loop() {
		r.qs[0].Members[0] = w.id(pick())
		start := time.Now()
		r.read(board)
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
// index kept, the ids known and unknown as they come.
func BenchmarkReplay(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			w := newWorkload(n)
			us := w.log(1_000_000)
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

// BenchmarkProve is what it costs an update of an open board to be proved: 250 updates
// and a publication, the same ones unproved and proved.
func BenchmarkProve(b *testing.B) {
	for _, proved := range []bool{false, true} {
		b.Run(map[bool]string{false: "unproved", true: "proved"}[proved], func(b *testing.B) {
			w := newWorkload(210_000)
			board := w.board()
			sum := board.Sum()
			if !proved {
				board.mu.Lock()
				board.summedTo = 0
				board.mu.Unlock()
			} else if !board.Prove(rankcache.State{Seq: board.Progress().Highest, Sum: sum, HasSum: true}) {
				b.Fatal("not proved")
			}
			pick := w.picker(false)
			defer cpu(b)()
			for us := make([]wire.Update, benchBatch); b.Loop(); {
				b.StopTimer()
				for i := range us {
					us[i] = w.incr(pick())
					sum = (sum - wire.Hash(us[i].Member, us[i].Score-1) + wire.Hash(us[i].Member, us[i].Score)) & wire.SumMask
					us[i].Sum, us[i].HasSum = sum, true
				}
				b.StartTimer()
				if board.Apply(us).Refuted {
					b.Fatal("refuted")
				}
				board.Publish()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchBatch), "ns/update")
		})
	}
}

// BenchmarkBuild is the first publication: the sort of the whole board.
func BenchmarkBuild(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			w := newWorkload(n)
			board := New("b")
			w.fill(board)
			defer cpu(b)()
			for b.Loop() {
				board.index, board.freshStorage = nil, true
				board.Publish()
			}
		})
	}
}

// BenchmarkMemory reports the heap that a board holds, per member and above the
// ids' own bytes: when just opened, and after as many updates as it has members.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{57_000, 210_000, 1_000_000, 2_000_000} {
		b.Run(strconv.Itoa(n)+"/localboard", func(b *testing.B) {
			w := newWorkload(n)
			before := heap()
			board := w.board()
			w.report(b, "open", heap()-before, idLen)
			w.report(b, "estimate", board.Bytes(), idLen)
			w.update(board, n, w.picker(false))
			w.report(b, "live", heap()-before, idLen)
			runtime.KeepAlive(board)
			runtime.KeepAlive(w)
		})
		b.Run(strconv.Itoa(n)+"/sortedset", func(b *testing.B) {
			w := newWorkload(n)
			before := heap()
			set := w.sortedset()
			w.report(b, "open", heap()-before, 0)
			runtime.KeepAlive(set)
			runtime.KeepAlive(w)
		})
	}
}

// cpu begins to measure, and returns a function that reports the processor time
// of the whole process per operation, the garbage collector's included: on a machine that
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

// BenchmarkDense is the deepest dense rank that is counted: of a member with
// [rankcache.MaxDense] others ahead.
func BenchmarkDense(b *testing.B) {
	board := newBoard(b)
	entries := make([]rankcache.Entry, 210_000)
	for i := range entries {
		entries[i] = rankcache.Entry{Member: strconv.Itoa(1_000_000 + i), Score: float64(-i)}
	}
	if err := board.Load(1, entries); err != nil {
		b.Fatal(err)
	}
	board.Publish()
	r := newReads(rankcache.Query{Members: []string{entries[rankcache.MaxDense].Member}, Mode: rankcache.Dense})
	for b.Loop() {
		if own := &r.read(board).Own[0]; own.Ahead.Scores != rankcache.MaxDense {
			b.Fatal(own.Ahead)
		}
	}
}
