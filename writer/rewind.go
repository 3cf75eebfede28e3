package writer

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rankcache/internal/kafka"
	"rankcache/internal/tick"
	"rankcache/rooms"
	"rankcache/writer/internal/rewind"
)

const lookEvery = time.Second // how often Redis is asked whether it has lost something, and told how far it is

// rewinder has commands of durable classes read again that Redis may have lost: it does what a [rewind.Machine]
// answers. Until there is such a class it asks nobody anything. It is safe for concurrent use.
type rewinder struct {
	positions positions
	tiers     Tiers
	metrics   *rewindMetrics
	log       *slog.Logger
	round     atomic.Pointer[round] // the present one; never nil
	denied    atomic.Pointer[error] // why Redis may not be asked for its history; nil: it may
	damaged   atomic.Pointer[[]string]
	seen      atomic.Pointer[seenMasters]

	mu       sync.Mutex // only the machine is called under it
	machine  *rewind.Machine
	assigned []int32
	logs     logReader
	ctx      context.Context // of what the machine has asked for; nil while the writer does not run
	work     sync.WaitGroup
}

// seenMasters tells when all masters have answered with the eras of a round.
type seenMasters struct {
	of *round
	at time.Time
}

// logReader is the [consumer].
type logReader interface {
	logs(ctx context.Context, life, half time.Duration) (map[int32]rewind.Log, error)
	committedLogs(ctx context.Context) (map[int32]rewind.Log, error)
}

// round is what holds from one reading of the positions to the next. It is immutable.
type round struct {
	number  uint64 // 0 until a class is durable: then commands are read from where the group has committed
	reading bool   // from where seeks tell
	seeks   map[int32]rewind.Seek
	hashes  map[rewind.Master]rewind.Hash // as they were read
	eras    map[rewind.Master]rewind.Era  // for which durable boards are changed
	list    string                        // of the same, as scripts take it
	topicID string                        // of the command topic; "" if it is not known
	topic   uint64                        // its digest, or 0
}

var noRewinds = &round{reading: true} // the round without a durable class

// errOtherEra tells that a master has another era than a round is for.
var errOtherEra = errors.New("a master of Redis has another history")

// errStale tells that a round is over: what was begun in it is dropped, and read again in the next one.
var errStale = errors.New("the positions of Redis are read anew")

func newRewinder(opts Options, a *adopter, m *rewindMetrics) *rewinder {
	r := &rewinder{positions: positions{a}, tiers: opts.Tiers, metrics: m, log: opts.Log, machine: rewind.New()}
	r.damaged.Store(&[]string{})
	r.round.Store(noRewinds)
	a.judged = &r.round
	return r
}

// begin takes what the machine asks Kafka for, until ctx ends or end is called.
func (r *rewinder) begin(ctx context.Context, logs logReader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.logs, r.assigned = ctx, logs, nil
}

// end waits for what is under way. Nothing is begun after.
func (r *rewinder) end() {
	r.mu.Lock()
	r.ctx = nil
	r.mu.Unlock()
	r.work.Wait()
}

// tell tells the machine of an event and has done what it answers.
func (r *rewinder) tell(e rewind.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil {
		return
	}
	changes, ctx := r.machine.Changes(), r.ctx
	actions := r.machine.Step(time.Now(), e)
	r.metrics.changes.Add(float64(r.machine.Changes() - changes))
	r.metrics.rewinding.Set(float64(len(r.rewinding())))
	r.turn(e, actions)
	if len(actions) > 0 {
		r.work.Go(func() { r.act(ctx, actions) })
	}
}

// turn has the others see the machine's round.
func (r *rewinder) turn(e rewind.Event, actions []rewind.Action) {
	now := *r.round.Load()
	read, ok := e.(rewind.ErasRead)
	if ok = ok && read.Round == r.machine.Round(); ok {
		r.denied.Store(nil)
		now.eras = read.Eras
		now.list = listOf(read.Eras)
	} else if read, ok := e.(rewind.PositionsRead); ok && read.Round == r.machine.Round() {
		now.hashes = read.Of
	} else if log, ok := e.(rewind.LogRead); ok && log.Round == r.machine.Round() {
		now.topicID = log.Of[0].Topic // of any, and each topic has this one
		now.topic = digestOf(now.topicID)
	} else if r.denied.Load() != nil || now.number == r.machine.Round() && now.reading == r.machine.Reading() {
		return
	}
	now.number, now.reading, now.seeks = r.machine.Round(), r.machine.Reading(), make(map[int32]rewind.Seek)
	for _, a := range actions {
		if s, ok := a.(rewind.Seek); ok {
			now.seeks[s.Partition] = s
		}
	}
	r.round.Store(&now)
}

// deny has all but durable classes go on: Redis's history may not be asked for. Once it may, all is read again.
func (r *rewinder) deny(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.denied.Swap(&why) == nil {
		r.round.Store(&round{reading: true})
	}
}

// deniedBy returns why durable classes are left out, nil if they are not.
func (r *rewinder) deniedBy() error {
	if why := r.denied.Load(); why != nil {
		return *why
	}
	return nil
}

// digestOf returns that of a topic's id, 0 if it is not known.
func digestOf(topicID string) uint64 {
	if topicID == "" {
		return 0
	}
	digest := fnv.New64a()
	_, _ = digest.Write([]byte(topicID))
	return digest.Sum64()
}

// place returns where a record is, and when it was appended, as apply.lua takes it; "" without rewinds.
func (of *round) place(m *kafka.Message, polled time.Time) string {
	if of.topic == 0 {
		return ""
	}
	place := binary.BigEndian.AppendUint64(make([]byte, 0, 28), of.topic)
	place = binary.BigEndian.AppendUint32(place, uint32(m.TopicPartition.Partition))
	place = binary.BigEndian.AppendUint64(place, uint64(m.TopicPartition.Offset))
	return string(binary.BigEndian.AppendUint64(place, uint64(arrival(m, polled).UnixMilli())))
}

// listOf returns eras as scripts take them.
func listOf(eras map[rewind.Master]rewind.Era) string {
	var list []string
	for _, master := range slices.Sorted(maps.Keys(eras)) {
		list = append(list, string(eras[master]))
	}
	return strings.Join(list, " ")
}

func (r *rewinder) stale(of *round) bool { return r.round.Load() != of }

// assign tells which partitions the writer has now.
func (r *rewinder) assign(partitions []int32) {
	r.mu.Lock()
	if r.assigned = partitions; r.deniedBy() != nil {
		r.round.Store(&round{reading: true}) // reads again what was left out
	}
	r.mu.Unlock()
	if r.round.Load().number > 0 || r.needed() {
		r.tell(rewind.Assigned{Partitions: partitions})
	}
}

func (r *rewinder) needed() bool {
	return slices.ContainsFunc(r.tiers.File().Classes, func(c *rooms.Class) bool { return c.Durable })
}

// run looks for other histories of the masters until ctx ends, once there is a durable class.
func (r *rewinder) run(ctx context.Context) {
	for range tick.Every(ctx, lookEvery) {
		r.tick(ctx)
	}
}

func (r *rewinder) tick(ctx context.Context) {
	r.mu.Lock()
	assigned := r.assigned
	r.mu.Unlock()
	switch {
	case r.round.Load().number > 0:
		r.look(ctx)
	case r.needed(): // also of a writer without partitions, whose posts are judged by it
		r.tell(rewind.Assigned{Partitions: assigned})
	}
}

// look tells the machine what the masters have. Those that do not answer are not looked at.
func (r *rewinder) look(ctx context.Context) {
	now, e := r.round.Load(), rewind.Tick{Asked: time.Now(), Seen: make(map[rewind.Master]rewind.History)}
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	if now.reading {
		all, err := r.positions.masters(ctx)
		if err == nil && len(all) != len(now.eras) {
			r.fenced(now)
		}
		var damaged []string
		for _, m := range all {
			h, err := r.positions.hash(ctx, m.name)
			if err != nil {
				r.metrics.limit.Do(func() {
					r.log.Warn("what Redis has lost is not noticed: its positions are not read", "master", m.name, "err", err)
				})
			} else if m.era != "" {
				e.Seen[m.name] = rewind.History{Era: m.era, Life: h.Life}
				if h.Damaged {
					damaged = append(damaged, string(m.name))
				}
			}
		}
		if err == nil && now.confirmedBy(e.Seen) {
			r.seen.Store(&seenMasters{now, e.Asked})
		}
		r.damaged.Store(&damaged)
		r.metrics.damagedNow.Set(float64(len(damaged)))
	}
	r.metrics.waiting.Set(float64(r.positions.lost.count(now)))
	r.tell(e)
}

// confirmedBy reports whether all masters of a round, and no others, have answered with their eras.
func (of *round) confirmedBy(seen map[rewind.Master]rewind.History) bool {
	for master, h := range seen {
		if of.eras[master] != h.Era {
			return false
		}
	}
	return len(seen) == len(of.eras) && len(seen) > 0
}

// fenced tells that a master has refused a call of a round.
func (r *rewinder) fenced(of *round) { r.tell(rewind.Fenced{Round: of.number}) }

// done tells that everything of a batch is applied and published.
func (r *rewinder) done(b *batch) {
	if b.round.number == 0 {
		return
	}
	for p, next := range b.ends {
		r.tell(rewind.Done{Round: b.round.number, Partition: p, Next: int64(next)})
	}
}

// drain has the positions written before the writer ends.
func (r *rewinder) drain(ctx context.Context) {
	r.mu.Lock()
	actions := r.machine.Step(time.Now(), rewind.Drain{})
	r.mu.Unlock()
	r.act(ctx, actions)
}

// wasPublished reports whether what came of a record was published before the round. Then a command of a class that is
// not durable is not applied again: its order id may be forgotten.
func (of *round) wasPublished(m *kafka.Message) bool {
	return int64(m.TopicPartition.Offset) < of.seeks[m.TopicPartition.Partition].Published
}

// mayBeLost reports whether a record was there when the round began: Redis may have lost what came of it.
func (of *round) mayBeLost(m *kafka.Message) bool {
	return int64(m.TopicPartition.Offset) < of.seeks[m.TopicPartition.Partition].Target
}

// committable returns a batch's ends that are not committed, or not yet noted to have positions beside them.
func (of *round) committable(ends offsets) offsets {
	late := make(offsets, len(ends))
	for p, end := range ends {
		if s := of.seeks[p]; int64(end) > s.Published || int64(end) == s.Published && !s.Noted {
			late[p] = end
		}
	}
	return late
}

// rewinding returns the partitions that may lack changes. The caller has the lock.
func (r *rewinder) rewinding() []int32 {
	return slices.DeleteFunc(slices.Clone(r.assigned), func(p int32) bool { return !r.machine.Rewinding(p) })
}

// rewindStatus is what GET /v1/status shows once a class is durable.
type rewindStatus struct {
	// State is whole, rewinding (Redis may lack changes), asking (how far Redis is) or denied (to ask).
	State     string  `json:"state"`
	Rewinding []int32 `json:"rewinding"` // partitions
	// ReadAgain counts the last rewind's commands, AppliedAgain those of them that Redis had lost.
	ReadAgain    int64 `json:"read_again"`
	AppliedAgain int64 `json:"applied_again"`
	// Damaged are the masters that may lack boards of the ledger, Waiting the boards whose commands wait for it.
	Damaged []string `json:"damaged,omitempty"`
	Waiting int      `json:"waiting_boards,omitempty"`
}

// status asks Redis and Kafka. Whole: all masters have, in their eras, all that was committed by now.
func (r *rewinder) status(ctx context.Context) *rewindStatus {
	if r.deniedBy() != nil {
		return &rewindStatus{State: "denied", Rewinding: []int32{}}
	}
	if r.round.Load().number == 0 {
		return nil
	}
	behind, err := r.behind(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	st := &rewindStatus{State: "whole", Rewinding: append(behind, r.rewinding()...), ReadAgain: r.metrics.again.Load(), AppliedAgain: r.metrics.lost.Load(),
		Damaged: r.damagedNow(), Waiting: r.positions.lost.count(r.round.Load())}
	slices.Sort(st.Rewinding)
	st.Rewinding = slices.Compact(st.Rewinding)
	switch {
	case err != nil || !r.machine.Reading():
		st.State = "asking"
	case len(st.Rewinding) > 0:
		st.State = "rewinding"
	}
	return st
}

const behindLooks = 15 // how often positions are looked at, as they are written once a second

// behind returns the partitions of which a master lacks, after a moment, what is committed now.
func (r *rewinder) behind(ctx context.Context) (parts []int32, err error) {
	r.mu.Lock()
	read := r.logs
	r.mu.Unlock()
	if read == nil {
		return nil, errStale
	}
	logs, err := read.committedLogs(ctx)
	for range behindLooks {
		if err == nil {
			parts, err = r.lacking(ctx, logs)
		}
		if err != nil || len(parts) == 0 || !tick.Sleep(ctx, lookEvery/10) {
			break
		}
	}
	return append([]int32{}, parts...), err
}

// lacking returns the partitions whose positions are before what was committed.
func (r *rewinder) lacking(ctx context.Context, logs map[int32]rewind.Log) (parts []int32, err error) {
	all, err := r.positions.masters(ctx)
	for _, m := range all {
		if err != nil {
			return nil, err
		}
		var h rewind.Hash
		h, err = r.positions.hash(ctx, m.name)
		for id, log := range logs {
			if !h.Of[id].Has(log.Topic, log.Committed, m.era) {
				parts = append(parts, id)
			}
		}
	}
	return parts, err
}

// damagedNow returns the masters that were damaged at the last look.
func (r *rewinder) damagedNow() []string { return *r.damaged.Load() }

// mark marks a record's jobs, the command's first, whose outcome is published already if it is read again.
func (r *rewinder) mark(of *round, m *kafka.Message, jobs ...*job) {
	if !of.wasPublished(m) {
		return
	}
	if !jobs[0].waits {
		r.metrics.count(&jobs[0].Outcome)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range jobs {
		o := rewind.Applied
		switch {
		case j.waits:
			continue
		case j.Refusal != nil:
			o = rewind.Refused
		case j.Duplicate:
			o = rewind.Repeated
		}
		j.told = !r.machine.Publishes(m.TopicPartition.Partition, int64(m.TopicPartition.Offset), o)
	}
}
