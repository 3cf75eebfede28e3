package profile

import (
	"context"
	"strings"
	"sync"
	"time"

	"rankcache"
)

// loader loads members from the source: one flight for each, several in a call. worker.go has its workers.
type loader struct {
	clock
	opts    Options
	store   *store
	source  *guardedSource
	metrics *metrics

	mu          sync.Mutex         // guards everything below and every write to the store
	flights     map[string]*flight // by member: in progress, or recent results
	recent      []*flight          // recent results, in no order
	recentBytes int
	queue       queue
	version     uint32 // of the newest flight
	closed      bool   // run has returned: there will be no more loads
}

func newLoader(c clock, opts Options, s *store, source *guardedSource, m *metrics) *loader {
	return &loader{clock: c, opts: opts, store: s, source: source, metrics: m, flights: make(map[string]*flight), queue: newQueue()}
}

// waiter is one row of a page that waits for a flight.
type waiter struct {
	row      int
	flight   *flight
	deadline time.Duration // when the row is answered without its profile
}

// wait loads the profiles of the given rows, waits for them until the deadline and returns how many are still missing.
func (l *loader) wait(ctx context.Context, rows []int, members []string, dst [][]byte, s *stamp) (missing int) {
	if len(rows) == 0 {
		return 0
	}
	waiters, missing := l.enqueue(rows, members, dst, s)
	timer := time.NewTimer(l.opts.Deadline)
	defer timer.Stop()
	for _, w := range waiters {
		if !l.await(ctx, w, timer) || w.flight.value.head == nil {
			missing++
			continue
		}
		dst[w.row] = w.flight.value.profile() // not from the store, which may have refused it
		s.record(w.row, w.flight.key, w.flight.revision)
		s.recheckAt(w.flight.value.softExpiry())
	}
	if missing > 0 {
		s.recheckAt(l.now() + l.opts.Retry)
		if ctx.Err() == nil { // else nobody is answered
			l.metrics.missing.Add(float64(missing))
		}
	}
	return missing
}

// enqueue finds or makes a flight for every row, dispatches the new ones together,
// and returns the rows to wait for and how many are refused.
//
// A flight may be done between a page's lookup and this call: the page found nothing in the store, would find no flight
// either, and would load the member a second time. Entries are stored and their flights removed in one step under mu,
// so a second lookup under mu finds one or the other.
func (l *loader) enqueue(rows []int, members []string, dst [][]byte, s *stamp) (waiters []waiter, refused int) {
	now := l.now()
	var created []*flight
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, row := range rows {
		if rankcache.CheckMember(members[row]) != nil {
			continue // not a valid id, so there is no profile to load
		}
		if l.flights[members[row]] == nil && l.lookupAgain(row, members[row], now, dst, s) {
			continue
		}
		var f *flight
		if f, created = l.flightOf(members[row], now, created); f == nil {
			refused++
			continue
		}
		waiters = append(waiters, waiter{row: row, flight: f})
	}
	l.dispatch(created, now, false)
	for i := range waiters {
		waiters[i].deadline = l.promote(waiters[i].flight.call, now) + l.opts.Deadline
	}
	return waiters, refused
}

// lookupAgain fills the row from the store if its profile has been stored by now.
func (l *loader) lookupAgain(row int, member string, now time.Duration, dst [][]byte, s *stamp) bool {
	key := l.store.key(member)
	s.record(row, key, l.store.revisions.of(key))
	e, state := l.store.lookup(key, member, now)
	if state == absent {
		return false
	}
	dst[row] = e.profile()
	s.recheckAt(max(e.softExpiry(), now+l.opts.Retry))
	return true
}

// flightOf returns the member's flight, a new one added to created; nil if too many members wait. mu is held.
func (l *loader) flightOf(member string, now time.Duration, created []*flight) (*flight, []*flight) {
	if f := l.flights[member]; f != nil && (f.call == nil || !f.call.isDone() || now < f.expiry) { // no call: in created
		return f, created
	}
	if l.closed || l.queue.members+len(created) >= l.opts.Pending {
		l.metrics.overflow.Inc()
		return nil, created
	}
	l.version++
	f := &flight{member: strings.Clone(member), key: l.store.key(member), version: l.version}
	l.flights[f.member] = f
	return f, append(created, f)
}

// dispatch queues new flights as calls of at most a batch. mu is held, and has been since they were made.
func (l *loader) dispatch(created []*flight, now time.Duration, background bool) {
	for len(created) > 0 {
		n := min(len(created), l.opts.Batch)
		k := &call{flights: created[:n:n], done: make(chan struct{}), waitedSince: now, background: background}
		for _, f := range k.flights {
			f.call = k
		}
		l.queue.push(k)
		created = created[n:]
	}
}

// promote raises a background call to pages' priority, and returns when the first page began to wait. mu is held.
func (l *loader) promote(k *call, now time.Duration) time.Duration {
	if k.background {
		k.background = false
		k.waitedSince = now
		if !k.taken {
			l.queue.push(k) // a second time: the worker that takes it skips the other
		}
	}
	return k.waitedSince
}

// await waits for the waiter's flight and reports whether it is done.
func (l *loader) await(ctx context.Context, w waiter, timer *time.Timer) bool {
	if w.flight.call.isDone() {
		return true
	}
	left := w.deadline - l.now()
	if left <= 0 {
		return false
	}
	timer.Reset(left)
	select {
	case <-w.flight.call.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func (l *loader) refresh(members []string) {
	if len(members) == 0 {
		return
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	var created []*flight
	for _, member := range members {
		_, created = l.flightOf(member, now, created)
	}
	l.dispatch(created, now, true)
}

// drop removes the member's entry, and its flight, whose result is discarded.
func (l *loader) drop(member string) bool {
	key := l.store.key(member)
	l.mu.Lock()
	defer l.mu.Unlock()
	f, found := l.flights[member]
	if found {
		f.dropped = true
		delete(l.flights, member)
	}
	stored := l.store.remove(key, member)
	return found || stored
}

func (l *loader) pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.members
}
