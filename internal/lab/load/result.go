package load

import (
	"math"
	"time"
)

// Result is what one window showed.
type Result struct {
	Requests int // good replies
	Errors   int // replies that were not what was announced, and lost connections
	// Unanswered requests of a paced run were due in the window and not answered
	// at its end. They count in the latencies with the time waited so far.
	Unanswered int
	// SentLate requests of an urgent run were sent a millisecond or more after they were due,
	// though a connection was free. Their latency counts from when they were sent.
	SentLate int
	Window   time.Duration // as it really was
	CPU      time.Duration // of the server's processes
	Error    error         // the first that was counted

	latencies []time.Duration // of a paced run, sorted
}

// Rate returns good replies a second.
func (r *Result) Rate() float64 { return float64(r.Requests) / r.Window.Seconds() }

// CPUPerRequest returns the server's CPU time for each good reply; 0 if there
// was none.
func (r *Result) CPUPerRequest() time.Duration {
	return r.CPU / time.Duration(max(r.Requests, 1))
}

// Busy returns how many cores the server's processes kept busy. Far below the
// cores that it may use, in a closed loop, this means that the load was the bottleneck.
func (r *Result) Busy() float64 { return r.CPU.Seconds() / r.Window.Seconds() }

// Percentile returns the latency within which a share p, from 0 to 1, of the
// requests of a paced run was answered (the nearest rank), from the time when each
// was due. It is 0 for a closed loop, which can't tell.
func (r *Result) Percentile(p float64) time.Duration {
	n := len(r.latencies)
	if n == 0 {
		return 0
	}
	rank := int(math.Ceil(p * float64(n)))
	return r.latencies[min(max(rank, 1), n)-1]
}

func (r *Result) fail(err error) {
	r.Errors++
	if r.Error == nil {
		r.Error = err
	}
}
