package live

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/sidecar"
	"rankcache/sidecar/internal/apijson"
)

const (
	// history is from how many versions of a key diffs are made; who has an older one gets the page.
	history = 64
)

// encoder makes the versions of one key for all of its streams. The loop gives it turns; fields
// without another guard belong to the loop's goroutine.
type encoder struct {
	hub    *Hub
	key    Key
	epoch  string
	woken  atomic.Bool // the page may have changed since it was read
	queued atomic.Bool // it is in the loop's queue

	reading   chan *look  // gets a look that has to wait for Redis or profiles; nil: there is none
	failed    error       // of the last look
	gone      bool        // it has ended, or was dropped
	small     bool        // it counts as small
	kept      bool        // nobody watched for a while: what is newest may be old
	unwatched time.Time   // since when nobody watches; zero: somebody does
	pausing   time.Time   // until when no change is told
	lookAt    time.Time   // when the page is read though nothing has woken the encoder
	timer     *time.Timer // queues the encoder
	// Room for the streams that are notified, and for what is encoded.
	notified []*Stream
	scratch  []byte

	mu        sync.Mutex     // guards the fields below; nothing is called under it but encodings
	asks      []chan<- error // of streams that wait for the page
	streams   map[*Stream]struct{}
	newest    *version // set by the loop alone
	currentAt time.Time
	code      Code // why it has ended, "" if it has not
}

// look is a page as it was read, and the profiles of its rows.
type look struct {
	rankcache.Answer
	profiles apijson.Joined
}

// errGone reports that an encoder has ended. The key gets another one.
var errGone = errors.New("the encoder has ended")

func newEncoder(h *Hub, key Key) *encoder {
	e := &encoder{hub: h, key: key, epoch: newEpoch(), streams: make(map[*Stream]struct{}), kept: true,
		lookAt: time.Now().Add(h.cfg.Look)}
	e.timer = time.AfterFunc(h.cfg.Look, e.queue)
	return e
}

func (e *encoder) queue() { e.hub.loop.queue(e) }

// wake has the page read. It returns at once.
func (e *encoder) wake() {
	if !e.woken.Swap(true) {
		e.queue()
	}
}

// ready waits for the page to have been read.
func (e *encoder) ready(ctx context.Context) error {
	answer := make(chan error, 1)
	e.mu.Lock()
	e.asks = append(e.asks, answer)
	e.mu.Unlock()
	e.queue()
	select {
	case err := <-answer:
		return err
	case <-e.hub.drain:
		return errGone
	case <-ctx.Done():
		return ctx.Err()
	}
}

// turn does what there is to do for the encoder.
func (e *encoder) turn(now time.Time) {
	if e.reading != nil {
		select {
		case l := <-e.reading:
			e.reading = nil
			e.take(l)
			e.answerAsks() // else they would ask for another look if this one has failed
		default: // it is queued again when that has come
			return
		}
	}
	e.lookIfDue(now)
	if e.reading == nil {
		e.answerAsks()
		e.setTimer(now)
	}
}

func (e *encoder) lookIfDue(now time.Time) {
	switch {
	case e.gone:
	case e.asked() && (e.kept || e.failed != nil || e.blocked()):
		e.kept = false
		e.look()
	case !now.Before(e.lookAt):
		e.lookAt = now.Add(time.Duration(float64(e.hub.cfg.Look) * (0.9 + 0.2*rand.Float64())))
		e.lookIfWatched(now)
	case e.woken.Load() && !e.kept && !now.Before(e.pausing):
		e.pausing = now.Add(e.hub.cfg.Interval)
		e.look()
	}
}

// lookIfWatched also counts the board as read, or drops an encoder that is unused.
func (e *encoder) lookIfWatched(now time.Time) {
	switch {
	case e.watchers() > 0:
		e.unwatched = time.Time{}
		e.hub.reader.Count(e.key.Board)
		e.look()
	case e.unwatched.IsZero():
		e.unwatched, e.kept = now, true
		e.notSmall()
	case now.Sub(e.unwatched) > keepFor:
		e.gone = e.hub.drop(e, true)
	}
}

// setTimer has the encoder queued when there is something to do.
func (e *encoder) setTimer(now time.Time) {
	next := e.lookAt
	switch {
	case e.gone:
		e.timer.Stop()
		return
	case e.woken.Load() && !e.kept && e.pausing.Before(next):
		next = e.pausing
	}
	e.timer.Reset(next.Sub(now))
}

// look reads the page and makes a version of it if it is another one. What this process keeps is
// read at once; for Redis, and for profiles that are not kept, a goroutine waits.
func (e *encoder) look() {
	e.woken.Store(false)
	q, l := e.query(), &e.hub.loop.look
	q.CopiesOnly = true
	*l = look{Answer: rankcache.One(context.Background(), e.hub.reader, q)}
	if l.Err == nil && (e.isNewest(&l.Answer) || e.join(waitForNothing, l)) {
		e.notSmall()
		e.take(l)
		return
	}
	if !e.mayRead() {
		e.failed = ErrStreams
		return
	}
	reading := make(chan *look, 1)
	e.reading = reading
	e.hub.running.Go(func() {
		reading <- e.read()
		e.queue()
	})
}

// read reads the page and its profiles, waiting for them.
func (e *encoder) read() *look {
	l := &look{Answer: rankcache.One(context.Background(), e.hub.reader, e.query())}
	if l.Err == nil {
		e.join(context.Background(), l)
	}
	return l
}

// waitForNothing is a context that is done.
var waitForNothing = func() context.Context {
	ctx, done := context.WithCancel(context.Background())
	done()
	return ctx
}()

// join adds the profiles, if the key has them, and returns false if some are missing.
func (e *encoder) join(ctx context.Context, l *look) bool {
	if e.key.Profiles {
		members := make([]string, len(l.Entries))
		for i := range l.Entries {
			members[i] = strings.Clone(l.Entries[i].Member)
		}
		l.profiles = apijson.JoinMembers(ctx, e.hub.reader.Profiles(), members)
	}
	return l.profiles.Missing == 0
}

// query returns how the page is read: streams count while somebody watches.
func (e *encoder) query() rankcache.Query {
	return rankcache.Query{Board: e.key.Board, Room: e.key.Room, Order: e.key.Order, Limit: e.key.Limit, Uncounted: true}
}

func (e *encoder) blocked() bool {
	return e.hub.reader.Tier(e.key.Board, e.key.Room) == sidecar.TierBlocked
}

// mayRead reports whether the board is kept here, or is one of the few that Redis is asked
// for.
func (e *encoder) mayRead() bool {
	if e.hub.reader.Tier(e.key.Board, e.key.Room) != sidecar.TierRedis {
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

// take makes what was read the newest version unless it is that already, or ends the encoder.
func (e *encoder) take(l *look) {
	switch e.failed = l.Err; {
	case errors.Is(l.Err, sidecar.ErrBlocked):
		e.end(CodeBlocked)
	case l.Err != nil: // the age tells of it
	case e.deleted(&l.Answer):
		e.end(CodeDeleted)
	case e.isNewest(&l.Answer):
		e.current(l.CurrentAt)
	default:
		e.update(l)
	}
}

// deleted reports whether there is no such board any more. Redis has no empty ones.
func (e *encoder) deleted(a *rankcache.Answer) bool {
	return e.newest != nil && e.newest.Members > 0 && a.Members == 0 && !a.Source.IsCopy()
}

func (e *encoder) isNewest(a *rankcache.Answer) bool { return e.newest != nil && e.newest.is(a) }

// current notes when the newest version was known to be the page.
func (e *encoder) current(at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.currentAt = at
}

func (e *encoder) update(l *look) {
	old := e.newest
	v := newVersion(e, old, l)
	if old != nil && v.equal(old) {
		old.fresh = v.fresh
		e.current(l.CurrentAt)
		return
	}
	e.publish(v, l.CurrentAt)
}

// publish makes v the newest version and notifies the streams.
func (e *encoder) publish(v *version, currentAt time.Time) {
	e.hub.metrics.versions.Inc()
	e.pausing = time.Now().Add(e.hub.cfg.Interval)
	e.mu.Lock()
	if e.newest != nil {
		e.newest.forget()
	}
	e.newest, e.currentAt = v, currentAt
	e.mu.Unlock()
	e.notified = e.appendStreams(e.notified[:0])
	for _, s := range e.notified {
		s.notify()
		e.hub.loop.steps.Done(1)
	}
	clear(e.notified)
}

// end ends the encoder and its streams; those that are opened from now on get another one.
func (e *encoder) end(code Code) {
	e.gone = true
	e.notSmall()
	e.hub.drop(e, false)
	e.mu.Lock()
	e.code = code
	e.mu.Unlock()
	e.notifyAll()
}

// notifyAll notifies all streams at once.
func (e *encoder) notifyAll() {
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

// asked reports whether a stream waits for the page.
func (e *encoder) asked() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asks) > 0
}

// answerAsks tells the streams that wait that the page was read, or why it was not.
func (e *encoder) answerAsks() {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.failed
	if err == nil && e.gone {
		err = errGone
	}
	for _, answer := range e.asks {
		answer <- err // it has room
	}
	e.asks = nil
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
func (e *encoder) age(now time.Time) (time.Duration, rankcache.Source) {
	q := e.query()
	q.Limit, q.CopiesOnly = 1, true
	a := rankcache.One(context.Background(), e.hub.reader, q)
	e.mu.Lock()
	defer e.mu.Unlock()
	currentAt := a.CurrentAt
	if a.Err != nil || a.Source != e.newest.Source {
		currentAt = e.currentAt
	}
	return max(0, now.Sub(currentAt)), e.newest.Source
}
