package replay

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/wire"
)

// pump applies what the reader has read. It is the only one to apply updates.
type pump struct {
	in      batches
	routes  *atomic.Pointer[routes]
	boards  Boards
	every   time.Duration   // between two publications
	totals  chan<- struct{} // asks for Redis's totals now
	metrics *metrics
	log     *slog.Logger
	badLog  limiter

	now     *routes      // of the batch in hand
	last    *follower    // the board of the previous record: mostly the next one's too
	filled  []*follower  // with updates gathered
	touched []*partition // with records or an end gathered
	update  wire.Update

	dirty     []*follower // readable, applied to and not published
	timer     *time.Timer // runs while armed
	armed     bool
	published time.Time // the last time
}

// routes is the followed boards. It is not changed, only replaced.
type routes map[rankcache.BoardID]*follower

func newPump(r *Runner, in batches) *pump {
	return &pump{in: in, routes: &r.routes, boards: r.boards, every: r.cfg.PublishEvery, totals: r.totalsKick, metrics: r.metrics, log: r.log}
}

// run applies batches until ctx ends.
func (p *pump) run(ctx context.Context) error {
	p.timer = time.NewTimer(p.every)
	p.armed = true
	defer p.timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case batch := <-p.in.full:
			p.apply(batch)
			p.in.recycle(batch)
		case <-p.timer.C:
			p.publish()
		}
	}
}

func (p *pump) apply(batch []item) {
	p.now, p.last = p.routes.Load(), nil
	for i := range batch {
		switch it := &batch[i]; it.kind {
		case itemRecord:
			p.record(it)
		case itemEnd:
			p.reach(it.part, it.offset)
		case itemBegin:
			p.flush()
			p.begin(it.part.topic)
		}
	}
	p.flush()
}

// record gathers one record. Offsets that go back say that the log is not the
// one that was begun; nothing more is taken from it until it is begun again.
func (p *pump) record(it *item) {
	part := it.part
	p.metrics.records.Inc()
	if it.offset < part.reached {
		part.topic.torn.Store(true)
	}
	if part.topic.torn.Load() {
		return
	}
	p.reach(part, it.offset+1)
	if err := wire.DecodeUpdate(it.value, &p.update); err != nil {
		p.bad(it, badReason(err), err)
		return
	}
	if f := p.route(part.topic); f != nil {
		if len(f.batch) == 0 {
			p.filled = append(p.filled, f)
		}
		f.batch = append(f.batch, p.update)
	}
}

// route returns the board that the decoded update is for, nil if it is not for a
// followed board of this topic.
func (p *pump) route(t *topic) *follower {
	if p.last == nil || p.last.id != p.update.Board {
		p.last = (*p.now)[p.update.Board]
	}
	if p.last == nil || p.last.topic != t.name {
		p.metrics.bad.WithLabelValues(reasonNotFollowed).Inc()
		return nil
	}
	return p.last
}

// Reasons for which a record is not applied, beside those of a
// [wire.BadUpdate].
const (
	reasonNotFollowed = "not-followed"
	reasonOther       = "other"
)

var badReasons = []string{"size", "json", "version", "board", "member", "op", "score", "order", reasonNotFollowed, reasonOther}

func badReason(err error) string {
	if bad, ok := errors.AsType[*wire.BadUpdate](err); ok {
		return bad.Reason
	}
	return reasonOther
}

func (p *pump) bad(it *item, reason string, err error) {
	p.metrics.bad.WithLabelValues(reason).Inc()
	if skipped, ok := p.badLog.allow(time.Now()); ok {
		p.log.Warn("record skipped", "topic", it.part.topic.name, "partition", it.part.number,
			"offset", it.offset, "err", err, "more", skipped)
	}
}

// reach notes that part was read up to next. It counts once it is applied.
func (p *pump) reach(part *partition, next int64) {
	if part.reached == part.next.Load() {
		p.touched = append(p.touched, part)
	}
	part.reached = max(part.reached, next)
}

// flush applies what was gathered, then says how far the partitions have come:
// a gate that sees a log's end must see its updates on the board.
func (p *pump) flush() {
	for _, f := range p.filled {
		f.flush(p.boards)
		p.soil(f)
	}
	clear(p.filled)
	p.filled = p.filled[:0]
	for _, part := range p.touched {
		before := part.ended()
		part.next.Store(part.reached)
		if !before && part.ended() {
			p.nudge(part.topic)
		}
	}
	p.touched = p.touched[:0]
	p.publishSoon()
}

// nudge wakes the gates of a topic that has come to an end.
func (p *pump) nudge(t *topic) {
	for _, f := range *p.now {
		if f.topic == t.name {
			f.nudge()
		}
	}
}

// begin tells the boards of a topic that it is read. Their gates want to know
// what Redis has by now.
func (p *pump) begin(t *topic) {
	for _, f := range *p.now {
		if f.topic == t.name {
			f.begin(t, p.boards)
		}
	}
	nudge(p.totals)
}
