package replay

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"rankcache"
	"rankcache/internal/tick"
)

// rateWindow is over how long a rate is taken.
const rateWindow = time.Second

// status is a board's state, as its gate has set it. Only the gate writes it; mu is
// a leaf: nothing is called with it held.
type status struct {
	mu     sync.Mutex
	state  rankcache.BoardState
	reason string
	since  time.Time
	// ready is set once the board was open, stale or given up: from then on readers have had the best answer there is.
	ready   bool
	applied meter // updates
	read    meter // records of its topic
}

// set sets the state and returns the one before.
func (s *status) set(state rankcache.BoardState, reason string, now time.Time) (before rankcache.BoardState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.state
	if s.state != state {
		s.state, s.since = state, now
	}
	s.reason = reason
	s.ready = s.ready || state == rankcache.StateOpen ||
		state == rankcache.StateStale || state == rankcache.StateGivenUp
	return before
}

func (s *status) wasReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// observe updates the rates.
func (s *status) observe(now time.Time, applied uint64, log *topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied.observe(now, int64(applied))
	if log != nil {
		s.read.observe(now, -log.left())
	}
}

// fill sets the status' own fields for operators, and returns how many
// records of the board's topic are read per second.
func (s *status) fill(out *rankcache.BoardStatus) (readRate float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out.State, out.Reason, out.Since, out.Rate = s.state, s.reason, s.since, s.applied.rate
	return s.read.rate
}

// meter is the rate of a rising count.
type meter struct {
	at    time.Time
	count int64
	rate  float64 // per second
}

// observe takes the count at now. A count that fell starts again.
func (m *meter) observe(now time.Time, count int64) {
	passed := now.Sub(m.at)
	switch {
	case m.at.IsZero() || count < m.count:
		*m = meter{at: now, count: count}
		return
	case passed < rateWindow/10:
		return
	}
	rate := float64(count-m.count) / passed.Seconds()
	weight := min(1, passed.Seconds()/rateWindow.Seconds())
	if m.rate == 0 {
		weight = 1
	}
	*m = meter{at: now, count: count, rate: m.rate + weight*(rate-m.rate)}
}

// measure updates the board's rates.
func (f *feed) measure(now time.Time) {
	f.status.observe(now, f.replica.in.counts.applied.Load(), f.sources.topic())
}

// describe returns the board as operators see it. Where Redis's seq is unknown, so
// is the number of updates that the board lacks.
func (f *feed) describe() rankcache.BoardStatus {
	p, now := f.replica.board.Progress(), time.Now()
	f.measure(now)
	latest, target := f.sources.totals()
	known := f.sources.redisKnown(now)
	s := rankcache.BoardStatus{Board: f.id, Have: max(p.Applied(), f.replica.in.counts.distinct.Load()), Want: target,
		Members: p.Members, Audit: f.audit.status()}
	if at := f.replica.board.CurrentAt(); !at.IsZero() {
		s.Age = max(now.Sub(at), 0)
	}
	s.Proof = rankcache.ProofStatus{State: f.replica.board.State(), Origin: latest.State, OriginAt: latest.requested}
	s.Proof.Proved, s.Proof.ProvedAt = f.sources.proof()
	readRate := f.status.fill(&s)
	if s.State == rankcache.StateOpen && f.lost.Load() && f.replica.readable.Load() {
		s.State, s.Reason = rankcache.StateLost, "Redis has lost the board: it is answered as it was; rankcache rebuild writes it anew from the ledger, or with --from log from its updates"
		s.LostMembers = s.Members
	} else if s.State == rankcache.StateOpen && f.replica.settled() {
		s.Have, s.Want, known = p.Applied(), p.Applied(), true
		s.Reason = "closed: it does not change any more, so it is not compared"
	} else if s.State == rankcache.StateOpen {
		s.Have, s.Want = p.Applied(), max(latest.Seq, target)
		s.Reason = openReason(&s, latest, known)
	} else if log := f.sources.topic(); log != nil && readRate > 0 {
		s.ETA = time.Duration(float64(log.left()) / readRate * float64(time.Second))
	}
	if n := f.begunAgain.Load(); n > 0 && s.LostMembers == 0 {
		s.LostMembers = int(n)
		s.Reason = fmt.Sprintf("Redis has lost an earlier life with %d members, and the board has begun again: rankcache rebuild puts back what the ledger, or with --from log its topic, has of it. %s", n, s.Reason)
	}
	if !known {
		s.Want = 0
	}
	return s
}

// openReason returns the reason of an open board now: the one that its gate gave when it opened it may be out of date.
func openReason(s *rankcache.BoardStatus, latest reading, known bool) string {
	switch {
	case !known && latest.requested.IsZero():
		return "its total in Redis is not read yet"
	case !known:
		return "not compared with Redis since " + latest.requested.UTC().Format(time.RFC3339)
	case s.Have < s.Want:
		return "behind Redis"
	}
	return s.Reason
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

// sum is the status of several boards as one.
type sum struct {
	boards, filling int
	have, want      uint64 // of those being filled
	rate            float64
	eta             time.Duration
}

func sumUp(all map[rankcache.BoardID]*feed) sum {
	s := sum{boards: len(all)}
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
