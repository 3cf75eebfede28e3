package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"time"

	"rankcache/internal/lab/servers"
)

// Target is a listening server.
type Target struct {
	Network string // "tcp" or "unix"
	Addr    string // host:port, or the path of a socket
}

// Question is the request that is sent, and what a good reply is. It is HTTP unless there is a Command.
type Question struct {
	Paths  []string // asked in turn on each connection
	Fields []string // header lines
	Body   []byte   // POST, if there is one
	Status int
	Length int // of a good reply's body in bytes; 0: any

	Command  []string // of Redis
	Pipeline int      // commands that are sent at once; 0 is 1
}

// Config is one run.
type Config struct {
	Target      Target
	Question    Question
	Connections int
	// Window is how long the run takes; with Calls, which end it, it has no meaning.
	Window time.Duration
	Calls  int
	// Rate is requests a second, at most 100 for each connection. 0: as many as are answered. Of HTTP alone.
	Rate float64
	// Pids are the server's processes, whose CPU time is measured.
	Pids []int
}

// Result is what one run showed.
type Result struct {
	Requests int // good replies
	Errors   int // other replies, and requests without one
	// Unanswered requests of a timetable were due and not answered at the end. They count in the latencies
	// with the time waited so far.
	Unanswered int
	Window     time.Duration // as it really was
	CPU        time.Duration // of the server's processes, from before the first connection to after the last
	Error      error         // what Errors were

	latencies []time.Duration // of a run with a rate, sorted
}

// Run sends the question as configured and returns what the run showed. The error is of the run itself: the program is
// missing, no such process, ctx ended; what the server got wrong is counted in the result. Two runs at a time disturb
// each other.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if cfg.Connections < 1 || cfg.Window <= 0 && cfg.Calls < 1 || cfg.Rate < 0 || cfg.Rate > 100*float64(cfg.Connections) {
		return nil, fmt.Errorf("%d connections for %v at a rate of %v: want 1 or more, a positive time, and at most 100/s on each", cfg.Connections, cfg.Window, cfg.Rate)
	}
	run := runH2load
	if cfg.Question.Command != nil {
		run = runRedisBenchmark
		if err := cfg.setCalls(ctx); err != nil {
			return nil, err
		}
	}
	before, err := CPU(cfg.Pids)
	if err != nil {
		return nil, err
	}
	r, err := run(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	after, err := CPU(cfg.Pids)
	if err != nil {
		return nil, fmt.Errorf("after the run: %w", err)
	}
	r.CPU = after - before
	return r, nil
}

// packages have the programs.
var packages = map[string]string{"h2load": "nghttp2-client", "redis-benchmark": "redis-tools"}

// Installed returns an error that names the programs that are missing and wraps [servers.ErrNotInstalled].
func Installed(programs ...string) (err error) {
	for _, name := range programs {
		if _, missing := exec.LookPath(name); missing != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w: install it (Debian's package %s) or put it in PATH", name, servers.ErrNotInstalled, packages[name]))
		}
	}
	return err
}

// output runs a program of the load to its end.
func output(ctx context.Context, name string, args ...string) (string, error) {
	if err := Installed(name); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput() // #nosec G204 -- the bench's own arguments
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %.300s", name, err, out)
	}
	return string(out), nil
}

// Rate returns good replies a second.
func (r *Result) Rate() float64 { return float64(r.Requests) / r.Window.Seconds() }

// CPUPerRequest returns the server's CPU time for each good reply; of none, that of all.
func (r *Result) CPUPerRequest() time.Duration { return r.CPU / time.Duration(max(r.Requests, 1)) }

// Busy returns how many cores the server's processes kept busy. Below those that it may use the load was the limit.
func (r *Result) Busy() float64 { return r.CPU.Seconds() / r.Window.Seconds() }

// Percentile returns the latency within which a share p, from 0 to 1, of the requests of a run with a rate was
// answered (the nearest rank). It is 0 without a rate, as such a run can't tell.
func (r *Result) Percentile(p float64) time.Duration {
	n := len(r.latencies)
	if n == 0 {
		return 0
	}
	return r.latencies[min(max(int(math.Ceil(p*float64(n))), 1), n)-1]
}
