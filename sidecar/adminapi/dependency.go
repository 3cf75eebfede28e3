package adminapi

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// DependencyState reports whether another service answers this process.
type DependencyState string

// The states.
const (
	DependencyOK      DependencyState = "ok"      // its calls are answered
	DependencyFailing DependencyState = "failing" // none was answered for some time, though it was called
	DependencyUnknown DependencyState = "unknown" // it was not called lately
	DependencyOff     DependencyState = "off"     // it is not used
)

const (
	// failingAfter is how long calls must have failed, without one that was answered:
	// one late answer is no outage. It is more than the second between two calls.
	failingAfter = 2 * time.Second
	// failureLasts is how many times as long a failure counts as an answer does: a
	// service that fails is called less often.
	failureLasts = 12
	// latencyWeight is the weight of one call in the moving average.
	latencyWeight = 1.0 / 8
	maxErrorBytes = 300
)

// Dependency is another service, by how it answers the calls of this process. All methods
// may be called concurrently.
type Dependency struct {
	expires time.Duration // how long the latest answer counts

	mu          sync.Mutex
	off         bool
	since       time.Time // of off, of the first answer in a row, or of the construction
	answeredAt  time.Time // end of the last answered call
	latency     time.Duration
	failingFrom time.Time // begin of the first failed call in a row; zero: the last one was answered
	failedAt    time.Time // end of the last failed call
	lastError   string
}

// NewDependency returns a dependency of which nothing is known. It is unknown again when
// it was not called for as long as expires, or twelve times that after a failure.
func NewDependency(expires time.Duration) *Dependency {
	return &Dependency{expires: expires, since: time.Now()}
}

// Observe records the end of a call: how long it took, 0 if that is not known, and nil or why
// it was not answered. Credentials in addresses are removed from the error's text.
func (d *Dependency) Observe(took time.Duration, err error) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.off, d.failedAt, d.lastError = false, now, cleanError(errorText(took, err))
		if d.failingFrom.IsZero() {
			d.failingFrom = now.Add(-took)
		}
		return
	}
	if state, _ := d.stateLocked(now); state != DependencyOK {
		d.since = now
	}
	d.off, d.answeredAt, d.failingFrom = false, now, time.Time{}
	switch {
	case took <= 0:
	case d.latency == 0:
		d.latency = took
	default:
		d.latency += time.Duration(latencyWeight * float64(took-d.latency))
	}
}

// Off records that the service is not used, and why; the next call takes that back.
func (d *Dependency) Off(why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.off {
		d.off, d.since = true, time.Now()
	}
	d.failingFrom, d.lastError = time.Time{}, cleanError(why)
}

// Idle reports whether no call has ended for as long as that.
func (d *Dependency) Idle(long time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Since(d.answeredAt) >= long && time.Since(d.failedAt) >= long
}

func (d *Dependency) stateLocked(now time.Time) (DependencyState, time.Time) {
	known := !d.answeredAt.IsZero() && now.Sub(d.answeredAt) <= d.expires
	switch failing := !d.failingFrom.IsZero(); {
	case d.off:
		return DependencyOff, d.since
	case failing && known && now.Sub(d.failingFrom) < failingAfter:
		return DependencyOK, d.since
	case failing && now.Sub(d.failedAt) <= failureLasts*d.expires:
		return DependencyFailing, d.failingFrom
	case failing:
		return DependencyUnknown, d.failedAt.Add(failureLasts * d.expires)
	case known:
		return DependencyOK, d.since
	case d.answeredAt.IsZero():
		return DependencyUnknown, d.since
	}
	return DependencyUnknown, d.answeredAt.Add(d.expires)
}

// DependencyStatus is a dependency at one moment, as /status shows it.
type DependencyStatus struct {
	State     DependencyState `json:"state"`
	Since     time.Time       `json:"since"`      // when it came into this state
	LastOK    *time.Time      `json:"last_ok"`    // when a call was last answered; null: never
	LatencyMs *float64        `json:"latency_ms"` // of answered calls, a moving average; null: not known
	LastError string          `json:"last_error,omitempty"`
	ErrorAt   *time.Time      `json:"last_error_at,omitempty"`
}

// Status returns the state now.
func (d *Dependency) Status() DependencyStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	var s DependencyStatus
	s.State, s.Since = d.stateLocked(time.Now())
	s.LastError = d.lastError
	if !d.answeredAt.IsZero() {
		s.LastOK = new(d.answeredAt)
	}
	if d.latency > 0 {
		s.LatencyMs = new(float64(d.latency.Microseconds()) / 1000)
	}
	if !d.failedAt.IsZero() {
		s.ErrorAt = new(d.failedAt)
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

// Dependencies are all of a process, by name. As a collector it tells those that are used.
type Dependencies map[string]*Dependency

var (
	dependencyLabels = []string{"dependency"}
	upDesc           = prometheus.NewDesc("rankcache_dependency_up",
		"1 while another service answers this process, 0 while it does not; absent while that is not known or it is not used.", dependencyLabels, nil)
	latencyDesc = prometheus.NewDesc("rankcache_dependency_latency_seconds",
		"Response time of another service: a moving average.", dependencyLabels, nil)
	successDesc = prometheus.NewDesc("rankcache_dependency_last_success_timestamp_seconds",
		"When another service last answered this process.", dependencyLabels, nil)
)

// Describe implements [prometheus.Collector].
func (Dependencies) Describe(out chan<- *prometheus.Desc) {
	out <- upDesc
	out <- latencyDesc
	out <- successDesc
}

// Collect implements [prometheus.Collector].
func (all Dependencies) Collect(out chan<- prometheus.Metric) {
	for name, d := range all {
		s := d.Status()
		gauge := func(desc *prometheus.Desc, value float64) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, name)
		}
		switch s.State {
		case DependencyOff:
			continue
		case DependencyOK:
			gauge(upDesc, 1)
		case DependencyFailing:
			gauge(upDesc, 0)
		}
		if s.LatencyMs != nil {
			gauge(latencyDesc, *s.LatencyMs/1000)
		}
		if s.LastOK != nil {
			gauge(successDesc, float64(s.LastOK.Unix()))
		}
	}
}

// statuses returns the state of each.
func (all Dependencies) statuses() map[string]DependencyStatus {
	now := make(map[string]DependencyStatus, len(all))
	for name, d := range all {
		now[name] = d.Status()
	}
	return now
}
