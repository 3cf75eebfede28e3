package adminapi

import (
	"sync"
	"time"

	"rankcache"
)

// State is where the process stands in its life.
type State string

// The states. The way goes only down the list, but that a Fault makes a ready process unready while it lasts.
const (
	StateStarting State = "starting"
	StateReady    State = "ready"
	StateUnready  State = "unready"
	StateStopping State = "stopping"
)

// Readiness knows whether the app may rely on this process. It latches: once ready, nothing outside the process takes
// that back, only Fault and Stop do. All methods may be called concurrently.
type Readiness struct {
	settled func() (bool, string)
	boards  func() []rankcache.BoardStatus
	// Fault, if not nil, returns what makes this process of no use, such as a wrong clock. It is set before Now.
	Fault func() error
	// Partly, if not nil, returns what keeps a ready process from a part of its work. It is set before Now.
	Partly func() error

	mu      sync.Mutex
	state   State
	reason  string
	since   time.Time
	started bool // was ready once, for the startup probe
}

// NewReadiness returns a Readiness that is starting until settled returns true; the string is the reason either way.
// boards lists super-hot boards with their progress. Either may be nil.
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

// Now returns the state, looking whether the boards have settled if they had not before.
func (r *Readiness) Now() Current {
	r.mu.Lock()
	defer r.mu.Unlock()
	var fault error
	if r.Fault != nil {
		fault = r.Fault()
	}
	if r.state == StateStarting {
		ok, reason := r.settled()
		if r.reason = reason; ok && fault == nil {
			r.state, r.since, r.started = StateReady, time.Now(), true
		}
	}
	now := Current{State: r.state, Reason: r.reason, Since: r.since, Started: r.started}
	if r.Partly != nil && now.State == StateReady {
		if err := r.Partly(); err != nil {
			now.Reason = "ready, but " + err.Error()
		}
	}
	if fault != nil && r.state != StateStopping {
		now.Reason = fault.Error()
		if r.started {
			now.State = StateUnready
		}
	}
	return now
}

// Stop makes the process not ready for good: it is about to end.
func (r *Readiness) Stop(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != StateStopping {
		r.state, r.reason, r.since = StateStopping, reason, time.Now()
	}
}
