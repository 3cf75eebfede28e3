package live

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"rankcache/sidecar"
)

const (
	// history is from how many versions of a key diffs are made; who has an older one gets the page.
	history = 64
)

// encoder makes the versions of one key for all of its streams. Its goroutine alone reads
// the board.
type encoder struct {
	hub     *Hub
	key     Key
	epoch   string
	woken   chan struct{}   // holds one signal
	asks    chan chan error // of streams that wait for the first page
	done    chan struct{}   // closed when the goroutine has ended
	small   bool            // counts as small; the goroutine's
	kept    bool            // nobody watched for a while: what is newest may be old; the goroutine's
	failed  error           // of the last look; the goroutine's
	pausing *time.Timer     // the goroutine's
	// Room for the streams that are woken, and for what is encoded; the goroutine's.
	notified []*Stream
	scratch  []byte

	mu        sync.Mutex // guards the fields below; nothing is called under it but encodings
	streams   map[*Stream]struct{}
	newest    *version
	currentAt time.Time
	code      Code // why it has ended, "" if it has not
}

func newEncoder(h *Hub, key Key) *encoder {
	return &encoder{hub: h, key: key, epoch: newEpoch(), woken: make(chan struct{}, 1), asks: make(chan chan error),
		done: make(chan struct{}), streams: make(map[*Stream]struct{}), kept: true}
}

func (e *encoder) wake() {
	select {
	case e.woken <- struct{}{}:
	default: // it is awake already, or will be
	}
}

// ready waits for the encoder to have read the page; again is whether it has ended instead.
func (e *encoder) ready(ctx context.Context) (again bool, err error) {
	answer := make(chan error, 1)
	select {
	case e.asks <- answer:
		return false, <-answer
	case <-e.done:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// run makes versions until the board is gone, the hub drains, or nobody has watched for a
// while.
func (e *encoder) run() {
	defer close(e.done)
	defer e.notSmall()
	tick := time.NewTicker(time.Duration(float64(e.hub.cfg.Look) * (0.9 + 0.2*rand.Float64())))
	defer tick.Stop()
	e.pausing = time.NewTimer(e.hub.cfg.Interval)
	defer e.pausing.Stop()
	var unwatched time.Time
	for e.ended() == "" {
		woken := e.woken
		if e.kept {
			woken = nil
		}
		select {
		case <-woken:
			e.hub.turn()
			e.look()
			e.pause()
		case answer := <-e.asks:
			if e.kept || e.failed != nil || e.blocked() {
				e.kept = false
				e.look()
			}
			answer <- e.failed
		case now := <-tick.C:
			switch {
			case e.watchers() > 0:
				unwatched = time.Time{}
				e.hub.reader.Count(e.key.Board)
				e.look()
			case unwatched.IsZero():
				unwatched, e.kept = now, true
				e.notSmall()
			case now.Sub(unwatched) > keepFor && e.hub.drop(e, true):
				return
			}
		case <-e.hub.drain:
			e.hub.drop(e, false)
			return
		}
	}
}

// pause waits for the interval between two versions. Signals that come meanwhile are one.
func (e *encoder) pause() {
	e.pausing.Reset(e.hub.cfg.Interval)
	for {
		select {
		case <-e.pausing.C:
			return
		case answer := <-e.asks:
			answer <- e.failed
		case <-e.hub.drain:
			return
		}
	}
}

// look reads the page and makes a version of it if it is another one.
func (e *encoder) look() {
	q := e.query()
	if !e.mayRead(&q) {
		e.failed = ErrStreams
		return
	}
	a, err := e.hub.unheard.Page(context.Background(), &q, 0, e.key.Limit)
	switch {
	case errors.Is(err, sidecar.ErrBlocked):
		e.end(CodeBlocked)
		e.failed = err
		return
	case err != nil: // the age tells of it
		e.failed = err
		return
	case e.deleted(&a):
		e.end(CodeDeleted)
		return
	}
	e.failed = nil
	e.take(&a)
}

func (e *encoder) query() sidecar.Query {
	return sidecar.Query{Board: e.key.Board, Room: e.key.Room, Order: e.key.Order}
}

func (e *encoder) blocked() bool {
	q := e.query()
	return e.hub.unheard.Tier(&q) == sidecar.TierBlocked
}

// mayRead reports whether the board is kept here, or is one of the few that Redis is asked
// for.
func (e *encoder) mayRead(q *sidecar.Query) bool {
	if e.hub.unheard.Tier(q) != sidecar.TierRedis {
		e.notSmall()
		return true
	}
	if !e.small {
		e.small = e.hub.takeSmall()
	}
	return e.small
}

func (e *encoder) notSmall() {
	if e.small {
		e.small = false
		e.hub.giveSmall()
	}
}

// deleted reports whether there is no such board any more. Redis has no empty ones.
func (e *encoder) deleted(a *sidecar.Answer) bool {
	return e.newest != nil && e.newest.Members > 0 && a.Members == 0 && !a.Source.Kept()
}

// take makes a the newest version unless it is that already.
func (e *encoder) take(a *sidecar.Answer) {
	old := e.newest // the goroutine alone sets it
	if old == nil || !old.is(a) || !old.fresh() {
		v := newVersion(e, old, a)
		if old == nil || !v.equal(old) {
			e.publish(v, a.CurrentAt)
			return
		}
		old.stale = v.stale
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.currentAt = a.CurrentAt
}

// publish makes v the newest version and notifies the streams.
func (e *encoder) publish(v *version, currentAt time.Time) {
	e.hub.metrics.versions.Inc()
	e.mu.Lock()
	if e.newest != nil {
		e.newest.forget()
	}
	e.newest, e.currentAt = v, currentAt
	e.mu.Unlock()
	e.wakeStreams()
}

// wakeStreams wakes all streams in turn, with those of other encoders.
func (e *encoder) wakeStreams() {
	e.notified = e.appendStreams(e.notified[:0])
	e.hub.wake(e.notified)
	clear(e.notified)
}

// end ends the encoder and its streams; those that are opened from now on get another one.
func (e *encoder) end(code Code) {
	e.hub.drop(e, false)
	e.mu.Lock()
	e.code = code
	e.mu.Unlock()
	e.wakeAll()
}

// wakeAll wakes all streams at once.
func (e *encoder) wakeAll() {
	for _, s := range e.appendStreams(nil) {
		s.notify()
	}
}

func (e *encoder) appendStreams(dst []*Stream) []*Stream {
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := range e.streams {
		dst = append(dst, s)
	}
	return dst
}

func (e *encoder) ended() Code {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.code
}

func (e *encoder) add(notify func()) *Stream {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := newStream(e, notify)
	e.streams[s] = struct{}{}
	return s
}

func (e *encoder) remove(s *Stream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.streams, s)
}

func (e *encoder) watchers() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.streams)
}

// diffable reports whether a diff may be made from the version n to the newest.
func (e *encoder) diffable(n uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.newest.diffable(n)
}

// age returns how old the newest page is, and its source.
func (e *encoder) age(now time.Time) (time.Duration, sidecar.Source) {
	q := e.query()
	kept, err := e.hub.unheard.Copy(&q)
	e.mu.Lock()
	defer e.mu.Unlock()
	currentAt := e.currentAt
	if err == nil && kept.Source == e.newest.Source && kept.Source.Kept() {
		currentAt = kept.CurrentAt
	}
	return max(0, now.Sub(currentAt)), e.newest.Source
}
