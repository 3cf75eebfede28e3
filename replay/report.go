package replay

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/internal/tick"
)

var (
	updatesDesc = prometheus.NewDesc("rankcache_replay_updates_total", "Updates of a board since its series began, by result: applied, duplicate or stale (its member has a later one). Of combined boards: the sum.", []string{"board", "result"}, nil)
	stateDesc   = prometheus.NewDesc("rankcache_replay_board_state", "1 for the state that a board is in. Of combined boards: how many are in it.", []string{"board", "state"}, nil)
	lagDesc     = prometheus.NewDesc("rankcache_replay_lag_updates", "Updates that the board lacks of those that Redis had when its total was last read; absent while Redis does not answer. Of combined boards: the most.", []string{"board"}, nil)
	memberDesc  = prometheus.NewDesc("rankcache_replay_members", "Members on a board. Of combined boards: the sum.", []string{"board"}, nil)
	auditDesc   = prometheus.NewDesc("rankcache_audit_last_timestamp_seconds", "When an open board was last compared with Redis. Of combined boards: the oldest.", []string{"board"}, nil)
	givenUpDesc = prometheus.NewDesc("rankcache_replay_given_up_boards", "Boards given up to Redis, of all; without those of rooms that have not begun.", nil, nil)
	lostDesc    = prometheus.NewDesc("rankcache_replay_lost_boards", "Boards that Redis has lost: they are answered as they were, or have begun again with fewer members.", nil, nil)
	offsetDesc  = prometheus.NewDesc("rankcache_replay_offset", "Offset up to which a partition has been applied, of boards with series of their own.", []string{"topic", "partition"}, nil)
)

// collector collects the values of boards and partitions. Boards with the same label are combined.
type collector struct {
	feeds *feeds
	label func(rankcache.BoardID) string

	mu      sync.Mutex // guards the last scrape's values. Updates count for the label of then: no counter falls.
	seen    map[*feed]resultCounts
	updates map[string]resultCounts // by label
}

type resultCounts [3]uint64 // numbers of updates in the order of updateResults

var updateResults = [3]string{"applied", "duplicate", "stale"}

// boardSeries are the values of the boards with one label.
type boardSeries struct {
	updates  resultCounts
	states   map[rankcache.BoardState]int
	lag      uint64
	lagKnown bool // Redis has answered for one of the boards
	members  int
	audited  time.Time // zero: none was
}

func newCollector(feeds *feeds, label func(rankcache.BoardID) string) *collector {
	if label == nil {
		label = func(id rankcache.BoardID) string { return string(id) }
	}
	return &collector{feeds: feeds, label: label}
}

func (*collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{updatesDesc, stateDesc, lagDesc, memberDesc, auditDesc, givenUpDesc, lostDesc, offsetDesc} {
		out <- d
	}
}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]*boardSeries)
	seen := make(map[*feed]resultCounts)
	topics := make(map[*topic]bool)
	givenUp, lost := 0, 0
	for _, f := range c.feeds.sorted() {
		label := c.label(f.id)
		s := all[label]
		if s == nil {
			s = &boardSeries{updates: c.updates[label], states: make(map[rankcache.BoardState]int)}
			all[label] = s
		}
		seen[f] = f.resultCounts()
		s.updates.add(seen[f], c.seen[f])
		switch s.add(f) {
		case rankcache.StateGivenUp:
			givenUp++
		case rankcache.StateLost:
			lost++
		}
		if t := f.sources.topic(); t != nil && !topics[t] && label == string(f.id) {
			topics[t] = true // two boards may share it
			t.collect(out)
		}
	}
	c.seen, c.updates = seen, make(map[string]resultCounts, len(all))
	for label, s := range all {
		c.updates[label] = s.updates
		s.send(out, label)
	}
	out <- prometheus.MustNewConstMetric(givenUpDesc, prometheus.GaugeValue, float64(givenUp))
	out <- prometheus.MustNewConstMetric(lostDesc, prometheus.GaugeValue, float64(lost))
}

func (f *feed) resultCounts() resultCounts {
	c := &f.replica.in.counts
	return resultCounts{c.applied.Load(), c.duplicate.Load(), c.stale.Load()}
}

func (c *resultCounts) add(now, before resultCounts) {
	for i := range c {
		c[i] += now[i] - min(before[i], now[i])
	}
}

// add adds a board. It returns its state, but none if it is given up and there is nothing in it.
func (s *boardSeries) add(f *feed) rankcache.BoardState {
	b := f.describe()
	s.states[b.State]++
	s.members += b.Members
	if at := b.Audit.At; !at.IsZero() && (s.audited.IsZero() || at.Before(s.audited)) {
		s.audited = at
	}
	var lag uint64
	if latest, _ := f.sources.totals(); f.sources.redisKnown(time.Now()) {
		have := f.replica.board.Progress().Applied()
		lag = max(latest.Seq, have) - have
		s.lag, s.lagKnown = max(s.lag, lag), true
	}
	if b.State == rankcache.StateGivenUp && lag == 0 && b.Members == 0 {
		return ""
	}
	if b.LostMembers > 0 {
		return rankcache.StateLost
	}
	return b.State
}

func (s *boardSeries) send(out chan<- prometheus.Metric, label string) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, v, append([]string{label}, labels...)...)
	}
	for i, result := range updateResults {
		send(updatesDesc, prometheus.CounterValue, float64(s.updates[i]), result)
	}
	for state, n := range s.states {
		send(stateDesc, prometheus.GaugeValue, float64(n), string(state))
	}
	send(memberDesc, prometheus.GaugeValue, float64(s.members))
	if s.lagKnown {
		send(lagDesc, prometheus.GaugeValue, float64(s.lag))
	}
	if !s.audited.IsZero() {
		send(auditDesc, prometheus.GaugeValue, float64(s.audited.Unix()))
	}
}

func (t *topic) collect(out chan<- prometheus.Metric) {
	for _, p := range t.parts {
		out <- prometheus.MustNewConstMetric(offsetDesc, prometheus.GaugeValue, float64(p.next.Load()), t.name, strconv.Itoa(int(p.number)))
	}
}

// logProgress logs how far the boards have come, once a second while they advance.
func logProgress(ctx context.Context, all *feeds, log *slog.Logger) error {
	var before uint64
	for range tick.Every(ctx, logEvery) {
		sum := sumUp(all.current())
		if sum.filling > 0 && sum.have != before {
			log.Info("boards are filled", "boards", sum.boards, "filling", sum.filling, "have", sum.have,
				"want", sum.want, "updates_per_s", int(sum.rate), "eta", sum.eta.Round(time.Second/10))
		}
		before = sum.have
	}
	return nil
}

// fillStatus is the status of several boards as one.
type fillStatus struct {
	boards, filling int
	have, want      uint64 // of those being filled
	rate            float64
	eta             time.Duration
}

func sumUp(all map[rankcache.BoardID]*feed) fillStatus {
	s := fillStatus{boards: len(all)}
	for _, f := range all {
		if f.replica.readable.Load() {
			continue
		}
		b := f.describe()
		s.filling++
		s.have += b.Have
		s.want += b.Want
		s.rate += b.Rate
		s.eta = max(s.eta, b.ETA)
	}
	return s
}
