package live

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
)

const (
	history = 64 // from how many versions of a key diffs are made; who has an older one gets the page
	// keepFor is how long a publisher stays without subscribers, so that a stream that was cut can go on.
	keepFor = 30 * time.Second
)

var errEnded = errors.New("the publisher has ended") // reports that a publisher has ended. The key gets another one.

// publisher reads a key's page and makes its versions for all subscribers. Unguarded fields are run's.
type publisher struct {
	hub         *Hub
	key         Key
	boards      []rankcache.BoardID // whose changes may be changes of the page: that of the key, or its shards
	epoch       string              // begins the ids of its versions
	changed     chan struct{}       // holds a signal that the page may have changed
	waiting     chan chan<- error   // from those who wait for the page to be read
	done        chan struct{}       // closed when run returns
	subscribers int                 // guarded by Hub.mu
	state       atomic.Pointer[state]
	currentAt   atomic.Pointer[time.Time] // when the newest version was last known to be the page

	failed      error     // of the last read
	small       bool      // it counts as small
	ended       bool      // it was removed from the hub
	idleSince   time.Time // when it was found without subscribers; zero: it has some
	nextPoll    *time.Timer
	pause       *time.Timer // until a change may be read
	pausedUntil time.Time
	pending     bool        // a change waits for the pause to end
	fresh       func() bool // whether the profiles of the newest version still are; nil: it has none
	scratch     []byte      // room for what is encoded
}

// state is what subscribers see of a publisher. It is never changed.
type state struct {
	version *version        // the newest; nil: none was made yet
	ended   Code            // why the publisher has ended, "" if it has not
	newer   []chan struct{} // closed, one after the other, when there is a newer state; each for a part of the subscribers
}

func newPublisher(h *Hub, key Key) *publisher {
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	p := &publisher{hub: h, key: key, boards: h.reader.Tiers().Parts(key.Board), epoch: hex.EncodeToString(random[:]), changed: make(chan struct{}, 1), waiting: make(chan chan<- error), done: make(chan struct{})}
	p.state.Store(&state{newer: newSignals(1)})
	return p
}

// signal has the page read soon. Any goroutine may call it; it waits for nothing.
func (p *publisher) signal() {
	select {
	case p.changed <- struct{}{}:
	default: // it will be read anyway
	}
}

// ready waits for the page to have been read. Any goroutine may call it.
func (p *publisher) ready(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case p.waiting <- answer:
	case <-p.done:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run publishes until ctx is done, the board is gone or nobody has subscribed for a while.
func (p *publisher) run(ctx context.Context) {
	defer close(p.done)
	p.nextPoll, p.pause = time.NewTimer(p.pollIn()), time.NewTimer(0)
	p.pause.Stop()
	defer p.nextPoll.Stop()
	defer p.pause.Stop()
	for !p.ended {
		p.step(ctx)
	}
}

// step waits for something to do, and does it.
func (p *publisher) step(ctx context.Context) {
	changed := p.changed
	if p.pending || !p.idleSince.IsZero() || p.small && len(p.boards) > 1 { // not all shards are here: Redis is asked at polls alone
		changed = nil
	}
	select {
	case <-ctx.Done():
		p.end(CodeDraining)
	case first := <-p.waiting:
		p.answer(ctx, first)
	case <-changed:
		p.pending = true
		p.pause.Reset(time.Until(p.pausedUntil))
	case <-p.pause.C:
		p.readChange(ctx)
	case <-p.nextPoll.C:
		p.poll(ctx)
	}
}

// readChange reads the page because it was changed.
func (p *publisher) readChange(ctx context.Context) {
	if wait := time.Until(p.pausedUntil); wait > 0 { // a poll has published meanwhile
		p.pause.Reset(wait)
		return
	}
	p.pending, p.pausedUntil = false, time.Now().Add(p.hub.cfg.Interval)
	select {
	case <-p.changed: // as well
	default:
	}
	p.read(ctx)
}

// pollIn returns the time until the next poll, which is not the same for all publishers.
func (p *publisher) pollIn() time.Duration {
	return time.Duration(float64(p.hub.cfg.Poll) * (0.9 + 0.2*mathrand.Float64()))
}

// poll reads the page, and counts that as a read of the board, if there are subscribers.
func (p *publisher) poll(ctx context.Context) {
	if wait := time.Until(p.pausedUntil); wait > 0 {
		p.nextPoll.Reset(wait)
		return
	}
	switch {
	case p.hub.subscribersOf(p) > 0:
		p.idleSince = time.Time{}
		p.hub.follow(p)
		for _, b := range p.boards {
			p.hub.reader.Count(b)
		}
		p.read(ctx)
	case p.idleSince.IsZero():
		p.idleSince = time.Now()
		p.notSmall()
	case time.Since(p.idleSince) > keepFor:
		p.ended = p.hub.removeUnused(p)
	}
	p.nextPoll.Reset(p.pollIn())
}

// answer tells first, and those who have come meanwhile, that the page was read, or why it was not.
func (p *publisher) answer(ctx context.Context, first chan<- error) {
	if p.state.Load().version == nil || !p.idleSince.IsZero() || p.failed != nil || p.blocked() {
		p.idleSince = time.Time{}
		p.read(ctx)
	}
	err := p.failed
	if err == nil && p.ended {
		err = errEnded
	}
	for _, answer := range p.appendWaiting([]chan<- error{first}) {
		answer <- err // it has room
	}
}

func (p *publisher) appendWaiting(all []chan<- error) []chan<- error {
	for {
		select {
		case more := <-p.waiting:
			all = append(all, more)
		default:
			return all
		}
	}
}

func (p *publisher) read(ctx context.Context) {
	a := p.page(ctx)
	p.take(ctx, &a)
}

// take publishes what was read unless it is the newest version, or ends the publisher.
func (p *publisher) take(ctx context.Context, a *rankcache.Answer) {
	newest := p.state.Load().version
	switch p.failed = a.Err; {
	case errors.Is(a.Err, sidecar.ErrBlocked):
		p.end(CodeBlocked)
	case a.Err != nil: // the age tells of it
	case newest == nil:
		p.update(ctx, a)
	case newest.Members > 0 && a.Members == 0 && !a.Source.IsCopy(): // Redis has no empty boards
		p.end(CodeDeleted)
	case newest.isOf(a) && (p.fresh == nil || p.fresh()):
		p.currentAt.Store(&a.CurrentAt)
	default:
		p.update(ctx, a)
	}
}

func (p *publisher) page(ctx context.Context) rankcache.Answer {
	q := p.query()
	q.CopiesOnly = true
	a := rankcache.One(ctx, p.hub.reader, q)
	if a.Err == nil {
		p.notSmall()
		return a
	}
	if !p.mayRead() {
		return rankcache.Answer{Err: ErrStreams}
	}
	return rankcache.One(ctx, p.hub.reader, p.query())
}

// query returns how the page is read, which is not counted: polls count while somebody watches.
func (p *publisher) query() rankcache.Query {
	return rankcache.Query{Board: p.key.Board, Room: p.key.Room, Order: p.key.Order, Limit: p.key.Limit, Uncounted: true}
}

func (p *publisher) tier() sidecar.Tier { return p.hub.reader.Tier(p.key.Board, p.key.Room) }

func (p *publisher) blocked() bool { return p.tier() == sidecar.TierBlocked }

// mayRead reports whether the board is kept here, or is one of the few that Redis is asked for.
func (p *publisher) mayRead() bool {
	if p.tier() != sidecar.TierRedis {
		p.notSmall()
		return true
	}
	if !p.small {
		p.small = p.hub.addSmall()
	}
	return p.small
}

func (p *publisher) notSmall() {
	if p.small {
		p.small = false
		p.hub.removeSmall()
	}
}

// update publishes a version of what was read, unless clients would see no difference.
func (p *publisher) update(ctx context.Context, a *rankcache.Answer) {
	profiles, trend := p.join(ctx, a.Entries), p.trend(ctx, a)
	newest := p.state.Load().version
	v := p.newVersion(newest, a, profiles, trend)
	if p.fresh = profiles.Fresh; trend == nil && p.key.Before.Board != "" {
		p.fresh = func() bool { return false } // it is looked for at each poll
	}
	p.currentAt.Store(&a.CurrentAt)
	if newest == nil || !v.equal(newest) {
		p.pausedUntil = time.Now().Add(p.hub.cfg.Interval)
		p.hub.metrics.versions.Inc()
		p.publish(state{version: v})
	}
}

// trend returns the ranks in the period before; nil while they may change, can't be read or are not wanted.
func (p *publisher) trend(ctx context.Context, a *rankcache.Answer) *encode.Trend {
	if p.key.Before.Board == "" || len(a.Entries) == 0 {
		return nil
	}
	q := rankcache.Query{Board: p.key.Before.Board, Room: p.key.Room, Order: p.key.Order, Uncounted: true, RanksOnly: true}
	for i := range a.Entries {
		q.Members = append(q.Members, a.Entries[i].Member)
	}
	ranks, until, err := p.hub.reader.FormerRanks(ctx, &q, p.hub.cfg.Now())
	if err != nil || !until.IsZero() {
		return nil
	}
	return &encode.Trend{Ranks: ranks}
}

func (p *publisher) join(ctx context.Context, rows []rankcache.Entry) (j encode.Joined) {
	if !p.key.Profiles {
		return j
	}
	members := make([]string, len(rows))
	for i := range rows {
		members[i] = strings.Clone(rows[i].Member)
	}
	return encode.JoinMembers(ctx, p.hub.reader.Profiles(), members)
}

// publish replaces the state and wakes the subscribers.
func (p *publisher) publish(s state) {
	n := p.hub.subscribersOf(p)
	s.newer = newSignals(1 + n/wokenAtOnce)
	old := p.state.Swap(&s).newer
	for _, newer := range old {
		p.hub.wake(newer, n/len(old))
	}
}

func newSignals(n int) []chan struct{} {
	all := make([]chan struct{}, n)
	for i := range all {
		all[i] = make(chan struct{})
	}
	return all
}

func (p *publisher) end(code Code) {
	p.ended = true
	p.notSmall()
	p.hub.remove(p)
	p.publish(state{version: p.state.Load().version, ended: code})
}

// age returns how old the newest page is, and its source. Any goroutine may call it.
func (p *publisher) age(now time.Time) (time.Duration, rankcache.Source) {
	q, newest := p.query(), p.state.Load().version
	q.Limit, q.CopiesOnly = 1, true
	a := rankcache.One(context.Background(), p.hub.reader, q)
	currentAt := a.CurrentAt
	if a.Err != nil || a.Source != newest.Source {
		currentAt = *p.currentAt.Load()
	}
	return max(0, now.Sub(currentAt)), newest.Source
}

// appendID appends the id of the event that brings the version n.
func (p *publisher) appendID(dst []byte, n uint64) []byte {
	return strconv.AppendUint(append(append(dst, p.epoch...), '.'), n, 10)
}

// has returns the version that an id names if a diff can be made from it to the newest, else 0.
func (p *publisher) has(id string) uint64 {
	epoch, text, _ := strings.Cut(id, ".")
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || epoch != p.epoch || !p.state.Load().version.diffable(n) {
		return 0
	}
	return n
}
