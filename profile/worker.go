package profile

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"rankcache/internal/tick"
)

const (
	// keepRefused is how long a refused profile stays with its flight, which bounds the loads of a hot page's member.
	keepRefused = 2 * time.Second
	flightCost  = 256      // the memory of a recent result beside its entry, in bytes
	recentShare = 1.0 / 32 // the part of the budget that recent results may take
	sweepEvery  = time.Second
)

// run makes the queued calls until ctx ends, and then returns nil.
func (l *loader) run(ctx context.Context) error {
	defer l.shutdown()
	g, ctx := errgroup.WithContext(ctx)
	for range l.opts.Calls {
		g.Go(func() error { return l.work(ctx) })
	}
	g.Go(func() error { return l.sweep(ctx) })
	return g.Wait()
}

func (l *loader) work(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.queue.ready:
		}
		for calls := l.take(); len(calls) > 0; calls = l.take() {
			l.load(ctx, calls) // also after the end of ctx, when it fails at once: a call that was taken has to be completed
		}
	}
}

func (l *loader) take() []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.take(l.opts.Batch)
}

// load loads the members of some calls, together a batch at most, and completes them.
func (l *loader) load(ctx context.Context, calls []*call) {
	var flights []*flight
	var members []string
	for _, k := range calls {
		for _, f := range k.flights {
			flights, members = append(flights, f), append(members, f.member)
		}
	}
	answers := make([]Answer, len(members))
	requested := l.now()
	err := l.source.load(ctx, members, answers)
	l.complete(calls, l.results(flights, answers, requested, err))
}

// result is the outcome of a flight: an item with an entry, or the zero entry when the load failed.
type result struct {
	flight *flight
	item
}

// results makes entries of the answers, before the lock is taken.
func (l *loader) results(flights []*flight, answers []Answer, requested time.Duration, err error) []result {
	list := make([]result, len(flights))
	for i, f := range flights {
		list[i] = result{flight: f, item: item{key: f.key}}
		switch {
		case err != nil:
		case answers[i].Err != nil:
			l.metrics.badProfile(answers[i].Err)
		case len(answers[i].JSON) > maxJSON:
			l.metrics.badProfile(bad(KindSize, "%d bytes", len(answers[i].JSON)))
		default:
			list[i].e = newEntry(f.version, requested+l.ttl(answers[i].JSON), f.member, answers[i].JSON)
		}
	}
	return list
}

func (l *loader) ttl(json []byte) time.Duration {
	ttl := l.opts.TTL
	if len(json) == 0 {
		ttl = l.opts.NegativeTTL
	}
	return ttl - time.Duration(rand.Float64()*float64(ttl)/10)
}

// complete stores the results, removes their flights and wakes the pages, as one step under mu.
func (l *loader) complete(calls []*call, list []result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	refused := l.save(list)
	for i, r := range list {
		f := r.flight
		f.value, f.bytes, f.revision = r.e, r.e.size()+flightCost, l.store.revisions.of(r.key)
		switch {
		case f.dropped: // already removed; its page has to be joined again
			f.revision--
		case r.e.head == nil:
			l.retain(f, now+l.opts.Retry)
		case refused[i]:
			l.retain(f, now+keepRefused)
		default:
			delete(l.flights, f.member)
		}
	}
	for _, k := range calls {
		k.flights = nil // else one recent result would keep all of them
		close(k.done)
	}
}

// save puts the results into the store, all revisions raised before one is recorded, and reports what was refused.
func (l *loader) save(list []result) (refused []bool) {
	var items []item
	var index []int
	for i, r := range list {
		if r.e.head != nil && !r.flight.dropped {
			items, index = append(items, r.item), append(index, i)
		}
	}
	refused = make([]bool, len(list))
	l.store.put(items, func(i int) { refused[index[i]] = true })
	return refused
}

// retain keeps a flight that is done as a recent result, unless these take too much memory already.
func (l *loader) retain(f *flight, expiry time.Duration) {
	if float64(l.recentBytes+f.bytes) > recentShare*float64(l.opts.Budget) {
		delete(l.flights, f.member)
		return
	}
	f.expiry = expiry
	l.recentBytes += f.bytes
	l.recent = append(l.recent, f)
}

// sweep removes expired recent results until ctx ends.
func (l *loader) sweep(ctx context.Context) error {
	for range tick.Every(ctx, sweepEvery) {
		l.expire(l.now())
	}
	return nil
}

func (l *loader) expire(now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.recent[:0]
	for _, f := range l.recent {
		if now < f.expiry {
			kept = append(kept, f)
			continue
		}
		l.recentBytes -= f.bytes
		if l.flights[f.member] == f { // neither dropped nor replaced
			delete(l.flights, f.member)
		}
	}
	clear(l.recent[len(kept):])
	l.recent = kept
}

// shutdown wakes all waiting pages: there will be no more loads.
func (l *loader) shutdown() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for calls := l.queue.take(l.opts.Batch); len(calls) > 0; calls = l.queue.take(l.opts.Batch) {
		for _, k := range calls {
			for _, f := range k.flights {
				delete(l.flights, f.member)
			}
			close(k.done)
		}
	}
}
