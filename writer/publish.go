package writer

import (
	"context"
	"slices"
	"strings"
	"time"

	"rankcache/internal/tick"
	"rankcache/rooms"
	"rankcache/wire"
)

// commitEvery is the time between commits of offsets: one for many batches, and little to repeat after a crash.
const commitEvery = 100 * time.Millisecond

// appliedBatch is a batch that Redis has applied.
type appliedBatch struct {
	*batch             // its ends are to be committed afterwards
	messages []message // to publish: updates, and commands that were refused
	heard    []heard   // what posts wait for
}

// publishBatches publishes and commits batches in the order of the channel until it is closed.
func (p *processor) publishBatches(ctx context.Context, c *consumer, to *producer, batches <-chan *appliedBatch) error {
	done, left, of, topic := make(offsets), make(offsets), noRewinds, ""
	var due <-chan time.Time // nil while there is nothing to commit
	for {
		select {
		case b, ok := <-batches:
			if !ok {
				p.commit(c, done, topic)
				p.rewinds.drain(ctx)
				return nil
			}
			if p.rewinds.stale(b.round) {
				continue
			}
			end := p.stall.take(&p.stall.publishing)
			if err := p.publish(ctx, to, b.messages); err != nil {
				return err
			}
			end()
			p.answer(ctx, b.heard)
			p.rewinds.done(b.batch)
			if of != b.round || topic != b.topic { // what is below was committed, too, or is of another topic
				of, topic, done, left = b.round, b.topic, make(offsets), make(offsets)
			}
			left.keep(b.left)
			if done.add(b.committable().atMost(left)); due == nil {
				due = time.After(commitEvery)
			}
		case <-due:
			if due = nil; !p.commit(c, done, topic) {
				due = time.After(commitEvery)
			}
		}
	}
}

// commit commits the offsets of a topic and reports success. After a failure the next commit
// includes them; at worst commands are repeated.
func (p *processor) commit(c *consumer, done offsets, topic string) bool {
	if err := c.commit(done, topic); err != nil {
		p.commitLog.Do(func() { p.log.Warn("offsets not committed, retrying", "err", err) })
		return false
	}
	clear(done)
	return true
}

// appendMessages counts the outcome of a job that is not refused, and appends its update
// and those of the boards that it feeds, if they must be published. Duplicates are published too: a crash
// between Redis and Kafka makes a command a duplicate without its update being in Kafka.
func (p *processor) appendMessages(dst []message, j *job, fed []*job) []message {
	if !j.told {
		p.metrics.commands.WithLabelValues(j.result()).Inc()
		p.audit(j)
		dst = p.appendUpdate(dst, j)
	}
	for _, f := range fed {
		if f.told || f.waits {
			continue
		}
		if p.metrics.fed.WithLabelValues(f.result()).Inc(); f.Refusal == nil {
			dst = p.appendUpdate(dst, f)
		}
	}
	return dst
}

// audit logs who was hidden or restored, once.
func (p *processor) audit(j *job) {
	if !j.Op.Own() || j.Duplicate {
		return
	}
	done := "member hidden"
	switch {
	case j.Op == wire.OpForget: // nor does the log have who
		p.log.Info("member forgotten", "board", j.Board, "reason", j.Reason, "order", j.OrderID, "seq", j.Update.Seq)
		return
	case uint64(j.Number) != j.Update.Hiding.Serial:
		done = "member stays as it is: a later command stands"
	case j.Op == wire.OpRestore:
		done = "member restored"
	}
	p.log.Info(done, "board", j.Board, "member", j.Member, "reason", j.Reason, "serial", uint64(j.Number), "seq", j.Update.Seq)
}

// appendUpdate appends a job's update if it must be published: that of a board that has ended too, as it lingers in
// sidecars. Where boards are not kept any more the topic may be gone, and is not made again. The ledger's topic stays.
func (p *processor) appendUpdate(dst []message, j *job) []message {
	if j.rules.asksLedger() {
		dst = p.appendToLedger(dst, &j.Update, j)
		for i := range j.Trims {
			dst = p.appendToLedger(dst, &j.Trims[i], j)
		}
	}
	if !p.opts.hasKafka() || !p.opts.follows(j) || j.rules.isGone(p.applier.now()) {
		return dst
	}
	log := p.opts.Tiers.File().Log(p.opts.Names, j.Board)
	dst = append(dst, updateMessage(&log, &j.Update))
	for i := range j.Trims {
		dst = append(dst, updateMessage(&log, &j.Trims[i]))
	}
	return dst
}

func updateMessage(log *rooms.Log, u *wire.Update) message {
	key := u.Member
	if log.Shared {
		key = string(u.Board)
	}
	return message{topic: log.Topic, key: []byte(key), value: wire.AppendUpdate(nil, u)}
}

// appendToLedger appends the ledger's record of an applied change, duplicates too: its key is the board, which keeps the
// sequence.
func (p *processor) appendToLedger(dst []message, u *wire.Update, j *job) []message {
	record := wire.LedgerUpdate{Update: *u, Era: j.era, Past: j.past}
	if board, kind, found := p.opts.Tiers.File().Board(u.Board); found {
		record.Class, record.Dims, record.Tag = kind.Name(), board.Dims, board.Period.Tag
	}
	return append(dst, message{topic: p.opts.Names.Ledger, key: []byte(u.Board), value: wire.AppendLedgerUpdate(nil, &record), kept: true})
}

// publish returns once Kafka has acknowledged all messages. Its only error is that ctx has ended.
func (p *processor) publish(ctx context.Context, to *producer, messages []message) error {
	if len(messages) == 0 {
		return nil
	}
	begin := time.Now()
	if err := p.nameFirst(ctx, to, messages); err != nil {
		return err
	}
	err := p.retry(ctx, "kafka", func() (err error) {
		messages, err = to.send(ctx, messages)
		return err
	})
	p.metrics.publish.Observe(time.Since(begin).Seconds())
	return err
}

// nameFirst names the masters of the present round before the first changes of it are published. Else a server whose
// history changes again before the next look would never be named. Its only error is that ctx has ended.
func (p *processor) nameFirst(ctx context.Context, to *producer, messages []message) error {
	of, toLedger := p.rewinds.round.Load(), func(m message) bool { return m.topic == p.opts.Names.Ledger }
	if of.list == "" || p.named.Load() == of || !slices.ContainsFunc(messages, toLedger) {
		return nil
	}
	return p.retry(ctx, "kafka", func() error { // around the flight: its error may be that another's time is over
		_, err, _ := p.naming.Do(of.list, func() (any, error) {
			err := to.nameMasters(ctx, p.opts.Names.Ledger, strings.Fields(of.list))
			if err == nil {
				p.named.Store(of)
			}
			return nil, err
		})
		return err
	})
}

const nameEvery = time.Minute // how often a writer names the masters

// nameMasters has the ledger know in each partition which servers this writer takes for the masters, when it reads
// positions and once a minute, until ctx ends. It names only those that have answered a moment ago.
func (p *processor) nameMasters(ctx context.Context, to *producer) {
	var last *round
	var at time.Time
	for range tick.Every(ctx, lookEvery/4) {
		seen := p.rewinds.seen.Load()
		if seen == nil || p.rewinds.stale(seen.of) || time.Since(seen.at) > 2*lookEvery || seen.of == last && time.Since(at) < nameEvery || !keepsLedger(p.opts.Tiers.File()) {
			continue
		}
		if err := to.nameMasters(ctx, p.opts.Names.Ledger, strings.Fields(seen.of.list)); err != nil {
			p.metrics.rewind.limit.Do(func() { p.log.Warn("the ledger is not told who is master, retrying", "err", err) })
			continue
		}
		last, at = seen.of, time.Now()
	}
}

const makeTopicsEvery = time.Second // how often it is looked which boards are super-hot

// makeTopics makes topics of super-hot boards until ctx ends: a class's before they begin, as sidecars open empty
// boards by them, those that rooms name also while nobody changes them.
func (p *processor) makeTopics(ctx context.Context, to *producer) {
	limit := logLimit()
	for range tick.NowAndEvery(ctx, makeTopicsEvery) {
		if err := to.makeTopics(ctx, p.superHotTopics(p.applier.now())); err != nil && ctx.Err() == nil {
			limit.Do(func() { p.log.Warn("topics of super-hot boards can't be made, retrying", "err", err) })
		}
	}
}

// superHotTopics returns the topics of the super-hot boards that have not ended.
func (p *processor) superHotTopics(now time.Time) (names []string) {
	file := p.opts.Tiers.File()
	for _, board := range p.opts.Tiers.Boards(rooms.ModeSuperHot) {
		if log := file.Log(p.opts.Names, board); log.Last.IsZero() || !now.After(log.Last) {
			names = append(names, log.Topic)
		}
	}
	return names
}
