package writer

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rankcache/internal/kafka"
	"rankcache/rooms"
	"rankcache/writer/internal/rewind"
)

// rewinder has commands of durable classes read again that Redis may have lost: it does what a [rewind.Machine]
// answers. Until there is such a class it asks nobody anything. It is safe for concurrent use.
type rewinder struct {
	asker
	round   atomic.Pointer[round]    // the present one; never nil
	denied  atomic.Pointer[error]    // why Redis may not be asked for its history; nil: it may
	damaged atomic.Pointer[[]string] // the masters that were at the last look; never nil
	seen    atomic.Pointer[seenMasters]

	mu       sync.Mutex // only the machine is called under it
	machine  *rewind.Machine
	assigned []int32
	ctx      context.Context // of what the machine has asked for; nil while the writer does not run
	work     sync.WaitGroup
}

// seenMasters tells when all masters have answered with the eras of a round.
type seenMasters struct {
	of *round
	at time.Time
}

func newRewinder(opts Options, a *adopter, m *rewindMetrics) *rewinder {
	r := &rewinder{asker: asker{positions: positions{a}, tiers: opts.Tiers, metrics: m, log: opts.Log}, machine: rewind.New()}
	r.damaged.Store(&[]string{})
	r.round.Store(noRewinds)
	a.lost.judged = &r.round
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

// act does what the machine has answered. Seeks are the consumer's, which sees them in the round.
func (r *rewinder) act(ctx context.Context, actions []rewind.Action) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var seeks []rewind.Seek
	alerts := make(map[rewind.Alert]int64) // to the number of commands
	writes := make(map[rewind.Master][]rewind.WritePosition)
	for _, a := range actions {
		switch a := a.(type) {
		case rewind.ReadEras:
			e, denied := r.readEras(ctx, a)
			if denied != nil {
				r.deny(denied)
			}
			r.tell(e)
		case rewind.ReadPositions:
			r.tell(r.readPositions(ctx, a))
		case rewind.ReadLog:
			r.tell(r.readLog(ctx, a))
		case rewind.MarkDamaged:
			r.tell(r.markDamaged(ctx, a))
		case rewind.Seek:
			seeks = append(seeks, a)
		case rewind.WritePosition:
			writes[a.Master] = append(writes[a.Master], a)
		case rewind.Healed:
			r.healed(a)
		case rewind.Alert:
			alert := rewind.Alert{Kind: a.Kind, Master: a.Master} // of all partitions
			alerts[alert] += a.Commands
		}
	}
	r.alert(alerts)
	r.begun(seeks)
	var wg sync.WaitGroup
	for _, of := range writes {
		wg.Go(func() {
			for _, e := range r.write(ctx, of) {
				r.tell(e)
			}
		})
	}
	wg.Wait()
}

// begun logs that commands are read again, if some are.
func (r *rewinder) begun(seeks []rewind.Seek) {
	var commands int64
	for _, s := range seeks {
		commands += max(s.Published-s.Offset, 0)
	}
	r.mu.Lock()
	rewinding := len(r.rewinding()) > 0
	r.mu.Unlock()
	if commands == 0 || !rewinding {
		return
	}
	m := r.metrics
	m.rewinds.Inc()
	if !m.running.Swap(true) {
		m.again.Store(0)
		m.lost.Store(0)
	}
	r.log.Info("Redis may have lost changes: commands are read again", "commands", commands, "partitions", len(seeks))
}

func (r *rewinder) healed(a rewind.Healed) {
	if r.metrics.running.Swap(false) {
		r.log.Info("Redis has all changes", "took", a.Took, "read_again", r.metrics.again.Load(), "applied_again", r.metrics.lost.Load())
	}
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

// rewinding returns the partitions that may lack changes. The caller has the lock.
func (r *rewinder) rewinding() []int32 {
	return slices.DeleteFunc(slices.Clone(r.assigned), func(p int32) bool { return !r.machine.Rewinding(p) })
}

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
