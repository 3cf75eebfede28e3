package serve

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync"

	"github.com/dustin/go-humanize"
)

const (
	// assumedOutside is what the process takes outside of Go at first, where unknown. Measured on Linux: 23 MiB.
	assumedOutside = 32 << 20
	// kafkaQueue is librdkafka's queue unless --kafka.queued.max.messages.kbytes is set; each message takes twice its
	// bytes more. kafkaRest is unparsed data and threads' heaps. Measured with both: 30 MiB.
	kafkaQueue, kafkaPerQueued = 4 << 20, 3
	kafkaRest                  = 24 << 20
	// kernelShare of the limit is for sockets, page tables and what grows outside of Go between two looks.
	kernelShare = 0.05
	// ownHeap is Go's memory without boards and profiles: encoded pages, hot pages, counters, stacks.
	ownHeap = 12 << 20
	// boardShare is the boards' share of Go's remaining memory: with less garbage the collector would run all the time.
	boardShare = 0.75
	limitStep  = 1 << 20 // by how much Go's limit has to be wrong to be set again
	// garbagePercent is how much garbage Go collects at once where it has a limit, less where that is near: reads wait
	// during collections. With Go's 100, beside 5,000 live streams, one in 4 s takes 80 ms.
	garbagePercent = 400
)

// memoryShare divides the memory limit: memory outside of Go, which Go's limit does not count, memory for Go, and the
// part of it that is for boards. Memory outside of Go is measured again and again, and its highest value counts.
type memoryShare struct {
	asked    int64 // --memory-budget; 0: no limit
	profiles int64 // of the profile cache
	fixed    bool  // Go's limit is the environment's
	seldom   bool  // the collector runs as seldom as garbagePercent says; guarded by mu
	log      *slog.Logger

	mu sync.Mutex // nothing is called under it but the runtime and the log
	memoryLimits
}

func newMemoryShare(l memoryLimits, asked, profiles int64, kafkaKeys map[string]string, log *slog.Logger) *memoryShare {
	queue := int64(kafkaQueue)
	if kb, err := strconv.ParseInt(kafkaKeys["queued.max.messages.kbytes"], 10, 32); err == nil {
		queue = kb << 10
	}
	l.Outside = kafkaRest + kafkaPerQueued*queue + outsideOfGo()
	return &memoryShare{memoryLimits: l, asked: asked, profiles: profiles, log: log,
		fixed: os.Getenv("GOMEMLIMIT") != "" || l.Source != limitCgroup}
}

// budget returns the bytes that boards may have now, and sets Go's limit.
func (s *memoryShare) budget() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Outside = max(s.Outside, outsideOfGo())
	s.limitGo()
	s.collectSeldom()
	return s.bounded()
}

// bounded returns the requested size, but no more than Go's limit leaves.
func (s *memoryShare) bounded() int64 {
	if s.asked == 0 || s.Go == math.MaxInt64 {
		return s.asked
	}
	return min(s.asked, s.forBoards())
}

// expected returns the budget of a process with these limits that has just started. It sets nothing.
func (s *memoryShare) expected() int64 {
	if s.Go = math.MaxInt64; s.Source == limitCgroup {
		s.Go = s.goLimit()
	}
	return s.bounded()
}

func (s *memoryShare) now() memoryLimits {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memoryLimits
}

// forBoards returns the bytes that the limit leaves for boards, at least a byte: 0 would be no limit.
func (s *memoryShare) forBoards() int64 {
	left := s.Go
	if s.Source == limitCgroup {
		left = min(left, s.left())
	}
	return max(1, int64(float64(left-ownHeap-s.profiles)*boardShare))
}

// limitGo bounds Go's memory to what is left. GOMEMLIMIT wins; without a cgroup's limit there is none.
func (s *memoryShare) limitGo() {
	if s.fixed {
		s.Go = debug.SetMemoryLimit(-1)
		return
	}
	limit := s.goLimit()
	if s.Go-limit < limitStep && limit-s.Go < limitStep {
		return
	}
	s.Go = limit
	debug.SetMemoryLimit(limit)
	s.log.Info("limits", "memory", text(s.Limit), "outside_of_go", text(s.Outside), "go_memory", text(limit),
		"for_boards", text(s.forBoards()), "gomaxprocs", runtime.GOMAXPROCS(0))
}

// collectSeldom has the collector use the memory that Go's limit leaves. GOGC in the environment wins.
func (s *memoryShare) collectSeldom() {
	if s.seldom || s.Go == math.MaxInt64 || os.Getenv("GOGC") != "" {
		return
	}
	s.seldom = true
	debug.SetGCPercent(garbagePercent)
}

// left returns the bytes that the limit leaves for Go.
func (s *memoryShare) left() int64 { return s.Limit - s.Outside - int64(float64(s.Limit)*kernelShare) }

// goLimit returns Go's limit. A quarter is Go's in any case: with less it would do nothing but collect.
func (s *memoryShare) goLimit() int64 { return max(s.left(), s.Limit/4) }

func text(bytes int64) string { return humanize.IBytes(uint64(bytes)) }

// outsideOfGo returns the resident memory of the process that is not Go's.
func outsideOfGo() int64 {
	statm, err := os.ReadFile("/proc/self/statm")
	var size, resident int64
	if _, scanErr := fmt.Fscan(bytes.NewReader(statm), &size, &resident); err != nil || scanErr != nil {
		return assumedOutside
	}
	got := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(got)
	return max(0, resident*int64(os.Getpagesize())-int64(got[0].Value.Uint64()-got[1].Value.Uint64()))
}
