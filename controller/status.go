package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache/internal/metric"
)

// Status is what a controller shows; its JSON is stable. What follows Leading is of when it worked last.
type Status struct {
	ID      string     `json:"id"`
	Leading bool       `json:"leading"`
	Since   *time.Time `json:"since,omitempty"` // it leads, or no longer does
	// Running are the boards of the index whose period runs, and Closing those that are to be closed; Lag is how long
	// the oldest of them has been. Closed are those of durable classes that are looked at once more.
	Running int     `json:"boards_running"`
	Closing int     `json:"boards_closing"`
	Closed  int     `json:"boards_closed"`
	Lag     float64 `json:"lag_seconds"`
	// WaitsFor is what boards that are to be closed wait for, empty if it is their turn.
	WaitsFor string `json:"waits_for,omitempty"`
	// Passed is the time up to which the writers have processed the commands, as far as it was needed.
	Passed *time.Time `json:"commands_passed,omitempty"`
	// Incomplete are the rolling boards that are not primed, PrimesWaitFor the first thing that priming waits for.
	Incomplete    int       `json:"rolling_incomplete"`
	PrimesWaitFor string    `json:"primes_wait_for,omitempty"`
	TopicsDeleted int       `json:"topics_deleted"`
	AbsentTopics  int       `json:"topics_absent"`
	TopicsAt      time.Time `json:"topics_looked_at,omitzero"`
	Error         string    `json:"last_error,omitempty"`
	ErrorAt       time.Time `json:"last_error_at,omitzero"`
}

// Status returns how far this controller has come.
func (c *Controller) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

func (c *Controller) note(change func(*Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.status)
}

// led records that this controller leads, or no longer does.
func (c *Controller) led(leading bool) {
	now := c.now()
	c.metrics.leading.Set(map[bool]float64{true: 1}[leading])
	if !leading { // the next leader shows them
		c.metrics.boards.Reset()
		c.metrics.lag.Set(0)
		c.metrics.absent.Set(0)
		c.metrics.incomplete.Set(0)
	}
	c.note(func(s *Status) { s.Leading, s.Since = leading, &now })
}

type metrics struct {
	leading, lag, absent, incomplete prometheus.Gauge
	boards                           *prometheus.GaugeVec
	closed, primes                   prometheus.Counter
	deleted, errors                  *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	set := metric.New(reg, "controller_")
	defer set.Must()
	return &metrics{
		leading:    set.Gauge("leading", "1 while this controller has the lease."),
		lag:        set.Gauge("lag_seconds", "Time since period and grace ended of the oldest board that is not closed yet, or has no final yet."),
		absent:     set.Gauge("absent_topics", "Topics whose board Redis does not have; they are deleted after --topic-keep."),
		boards:     set.Gauges("boards", "Boards of classes with periods in the index of ends: running, closing as their period is over, or closed and looked at once more after two minutes (durable classes).", "state"),
		closed:     set.Counter("closed_total", "Boards closed."),
		primes:     set.Counter("primes_total", "Primes sent: what ended periods give a member of a rolling board, one each."),
		incomplete: set.Gauge("rolling_incomplete", "Rolling boards of running periods that are not primed yet: they are answered with incomplete."),
		deleted:    set.Counters("topics_deleted_total", "Deleted topics: of ended boards of a class, or of boards that Redis has not had for --topic-keep (unknown).", "of"),
		errors:     set.Counters("errors_total", "Failed attempts, which are repeated: to get the lease, to compare the clock, to close boards, to list topics, to prime rolling boards.", "part"),
	}
}
