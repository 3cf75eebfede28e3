package adminapi

import (
	"sync"
	"time"

	"rankcache"
)

// State is where the process stands in its life.
type State string

// The states. The way goes only down the list.
const (
	StateStarting State = "starting"
	StateReady    State = "ready"
	StateStopping State = "stopping"
)

// Readiness knows whether the app may rely on this process. It latches: once
// ready, nothing outside the process takes that back, only Stop does. All
// methods may be called concurrently.
type Readiness struct {
	settled func() (bool, string)
	boards  func() []rankcache.BoardStatus

	mu      sync.Mutex
	state   State
	reason  string
	since   time.Time
	started bool // was ready once, for the startup probe
}

// NewReadiness returns a Readiness that is starting until settled returns true; the
// string beside it is the reason either way. boards lists the super-hot boards
// with their progress. Either may be nil: nothing has to settle, no boards.
func NewReadiness(settled func() (bool, string), boards func() []rankcache.BoardStatus) *Readiness {
	if settled == nil {
		settled = func() (bool, string) { return true, "nothing to wait for" }
	}
	if boards == nil {
		boards = func() []rankcache.BoardStatus { return nil }
	}
	return &Readiness{settled: settled, boards: boards, state: StateStarting, since: time.Now()}
}

// Current is a [Readiness] at one moment.
type Current struct {
	State   State
	Reason  string
	Since   time.Time // when it came into this state
	Started bool      // has been ready, whatever it is now
}

// Now returns the state, looking whether the boards have settled if they had
// not before.
func (r *Readiness) Now() Current {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == StateStarting {
		ok, reason := r.settled()
		r.reason = reason
		if ok {
			r.state, r.since, r.started = StateReady, time.Now(), true
		}
	}
	return Current{State: r.state, Reason: r.reason, Since: r.since, Started: r.started}
}

// Stop makes the process not ready for good: it is about to end.
func (r *Readiness) Stop(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != StateStopping {
		r.state, r.reason, r.since = StateStopping, reason, time.Now()
	}
}
