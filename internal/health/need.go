// Package health tells whether the services that a process needs answer it: whether they did once,
// before which it is not ready, and whether they do now. It calls what it is given.
package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// State reports whether another service answers this process.
type State string

// The states.
const (
	OK      State = "ok"      // its calls are answered
	Failing State = "failing" // none was answered for some time, though it was called
	Unknown State = "unknown" // it was not called lately
	Off     State = "off"     // it is not used
)

const (
	// failingAfter is how long calls must have failed, without one answered: one late answer is no outage.
	failingAfter  = 2 * time.Second
	failureLasts  = 12      // how many times as long a failure counts as an answer: such a service is called less often
	latencyWeight = 1.0 / 8 // the weight of one call in the moving average
	maxErrorBytes = 300

	AskEvery   = time.Second     // how often a service is called at least
	probeTime  = 3 * time.Second // bounds one probe; a ping has AskEvery
	firstPause = 50 * time.Millisecond
)

// Need is another service, by how it answers this process. All methods but Require may be called concurrently.
type Need struct {
	expires     time.Duration               // how long the latest answer counts
	probe, ping func(context.Context) error // nil: none

	mu          sync.Mutex
	met         bool // probe has succeeded
	refused     bool // since the last answer
	off         bool
	since       time.Time // of off, of the first answer in a row, or of the construction
	answeredAt  time.Time // end of the last answered call
	latency     time.Duration
	failingFrom time.Time // begin of the first failed call in a row; zero: the last one was answered
	failedAt    time.Time // end of the last failed call
	lastError   string
}

// NewNeed returns a service of which nothing is known, as again expires after its last call, failures 12 times that.
func NewNeed(expires time.Duration) *Need { return &Need{expires: expires, since: time.Now()} }

// Require has the process wait for the service until probe, which does harmlessly what the process does there, has
// returned nil once. Then ping is called every second in which nothing else was answered. Without a probe it does not
// wait, without a ping Observe alone tells. It returns n, and is called before [Needs.Run].
func (n *Need) Require(probe, ping func(context.Context) error) *Need {
	n.probe, n.ping = probe, ping
	return n
}

// Missing returns why a service that the process waits for has not answered yet, else "".
func (n *Need) Missing() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.probe == nil || n.met {
		return ""
	}
	return cmp.Or(n.lastError, "it has not answered yet")
}

// Refused reports whether a call was refused ([Refusal]) since the last answer: waiting changes nothing.
func (n *Need) Refused() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.refused
}

// Refusal is the error of a service that is there and does not let this process in, or do what it needs to do.
type Refusal struct{ Err error }

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

func refusal(err error) bool {
	_, is := errors.AsType[*Refusal](err)
	return is
}

// run asks the service again and again.
func (n *Need) run(ctx context.Context) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, AskEvery) {
		switch {
		case n.Missing() != "":
			if n.ask(ctx, n.probe, probeTime) {
				n.meet()
			}
		case n.ping == nil:
			return
		case !n.heard():
			n.ask(ctx, n.ping, AskEvery)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// heard reports whether a call was answered within the last second.
func (n *Need) heard() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failingFrom.IsZero() && time.Since(n.answeredAt) < AskEvery*9/10 // its own last ping is as old as that
}

func (n *Need) meet() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.met = true
}

func (n *Need) ask(ctx context.Context, call func(context.Context) error, limit time.Duration) bool {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begun := time.Now()
	err := call(bounded)
	if ctx.Err() != nil { // we gave it up
		return false
	}
	n.Observe(time.Since(begun), err)
	return err == nil
}

// Observe records a call: its time, 0: unknown, and why it failed or nil. Credentials in addresses are removed.
func (n *Need) Observe(took time.Duration, err error) {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refused = err != nil && (n.refused || refusal(err)); err != nil {
		n.off, n.failedAt, n.lastError = false, now, cleanError(errorText(took, err))
		if n.failingFrom.IsZero() {
			n.failingFrom = now.Add(-took)
		}
		return
	}
	if state, _ := n.stateLocked(now); state != OK {
		n.since = now
	}
	n.off, n.answeredAt, n.failingFrom = false, now, time.Time{}
	switch {
	case took <= 0:
	case n.latency == 0:
		n.latency = took
	default:
		n.latency += time.Duration(latencyWeight * float64(took-n.latency))
	}
}

// Off records that the service is not used, and why; the next call takes that back.
func (n *Need) Off(why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.off {
		n.off, n.since = true, time.Now()
	}
	n.failingFrom, n.lastError = time.Time{}, cleanError(why)
}

func (n *Need) stateLocked(now time.Time) (State, time.Time) {
	known := !n.answeredAt.IsZero() && now.Sub(n.answeredAt) <= n.expires
	switch failing := !n.failingFrom.IsZero(); {
	case n.off:
		return Off, n.since
	case failing && known && now.Sub(n.failingFrom) < failingAfter:
		return OK, n.since
	case failing && now.Sub(n.failedAt) <= failureLasts*n.expires:
		return Failing, n.failingFrom
	case failing:
		return Unknown, n.failedAt.Add(failureLasts * n.expires)
	case known:
		return OK, n.since
	case n.answeredAt.IsZero():
		return Unknown, n.since
	}
	return Unknown, n.answeredAt.Add(n.expires)
}

// Status is a service at one moment, as /status shows it.
type Status struct {
	State     State      `json:"state"`
	Since     time.Time  `json:"since"`      // when it came into this state
	LastOK    *time.Time `json:"last_ok"`    // when a call was last answered; null: never
	LatencyMs *float64   `json:"latency_ms"` // of answered calls, a moving average; null: not known
	LastError string     `json:"last_error,omitempty"`
	ErrorAt   *time.Time `json:"last_error_at,omitempty"`
}

func (n *Need) Status() Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	var s Status
	s.State, s.Since = n.stateLocked(time.Now())
	s.LastError = n.lastError
	if !n.answeredAt.IsZero() {
		s.LastOK = new(n.answeredAt)
	}
	if n.latency > 0 {
		s.LatencyMs = new(float64(n.latency.Microseconds()) / 1000)
	}
	if !n.failedAt.IsZero() {
		s.ErrorAt = new(n.failedAt)
	}
	return s
}

// errorText describes a deadline that passed as an operator sees it: no answer.
func errorText(took time.Duration, err error) string {
	if errors.Is(err, context.DeadlineExceeded) && took > 0 {
		return fmt.Sprintf("no answer within %v", took.Round(time.Millisecond))
	}
	return err.Error()
}

// userinfo is what stands before an @ in an address.
var userinfo = regexp.MustCompile(`([a-z][a-z0-9+.-]*://)?[^\s"'@]*@`)

// cleanError returns one line of a text of others, without credentials in addresses.
func cleanError(text string) string {
	text = text[:min(len(text), 4*maxErrorBytes)]
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, userinfo.ReplaceAllString(text, "$1***@"))
	return strings.ToValidUTF8(text[:min(len(text), maxErrorBytes)], "")
}
