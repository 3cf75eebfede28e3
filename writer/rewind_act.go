package writer

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"rankcache/internal/metric"
	"rankcache/rooms"
	"rankcache/writer/internal/rewind"
)

const askTimeout = 5 * time.Second // bounds what is asked of Redis and Kafka for a rewind

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
			r.tell(r.readEras(ctx, a))
		case rewind.ReadPositions:
			r.tell(r.readPositions(ctx, a))
		case rewind.ReadLog:
			r.tell(r.readLog(ctx, a))
		case rewind.MarkDamaged:
			r.markDamaged(ctx, a)
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
		wg.Go(func() { r.write(ctx, of) })
	}
	wg.Wait()
}

func (r *rewinder) readEras(ctx context.Context, a rewind.ReadEras) rewind.Event {
	all, err := r.positions.masters(ctx)
	if redis.HasErrorPrefix(err, "NOPERM") {
		r.deny(err)
	}
	if err != nil {
		return r.failed(a.Round, err)
	}
	r.positions.eras.take(all)
	of := make(map[rewind.Master]rewind.Era, len(all))
	for _, m := range all {
		of[m.name] = m.era
	}
	return rewind.ErasRead{Round: a.Round, Eras: of}
}

func (r *rewinder) readPositions(ctx context.Context, a rewind.ReadPositions) rewind.Event {
	of := make(map[rewind.Master]rewind.Hash, len(a.Eras))
	for master, era := range a.Eras {
		h, ok, err := r.positions.read(ctx, master, era)
		if err != nil {
			return r.failed(a.Round, err)
		}
		if !ok {
			return rewind.Fenced{Round: a.Round, Master: master}
		}
		of[master] = h
	}
	lives := make(map[rewind.Master]string, len(a.Former))
	for _, name := range a.Former {
		h, err := r.positions.hash(ctx, name)
		if err != nil {
			return r.failed(a.Round, err)
		}
		lives[name] = h.Life
	}
	return rewind.PositionsRead{Round: a.Round, Of: of, Lives: lives}
}

func (r *rewinder) readLog(ctx context.Context, a rewind.ReadLog) rewind.Event {
	of, err := r.logs.logs(ctx, r.orderLife(slices.Max[[]time.Duration]), r.orderLife(slices.Min[[]time.Duration])/2)
	if err != nil {
		return r.failed(a.Round, err)
	}
	return rewind.LogRead{Round: a.Round, Of: of, Rebuilds: slices.ContainsFunc(r.tiers.File().Classes, func(c *rooms.Class) bool { return c.Ledger })}
}

// orderLife returns that of one of the durable classes.
func (r *rewinder) orderLife(which func([]time.Duration) time.Duration) time.Duration {
	lives := []time.Duration{}
	for _, c := range r.tiers.File().Classes {
		if c.Durable {
			lives = append(lives, c.Orders)
		}
	}
	if lives == nil { // they are gone; what they have left is still looked after
		lives = append(lives, r.positions.birth.orderLife)
	}
	return which(lives)
}

// failed has what a round has asked for be asked again at a tick.
func (r *rewinder) failed(round uint64, err error) rewind.Event {
	r.metrics.limit.Do(func() { r.log.Warn("positions of the command topic not read, retrying", "err", err) })
	return rewind.Failed{Round: round}
}

// markDamaged marks a damaged master.
func (r *rewinder) markDamaged(ctx context.Context, a rewind.MarkDamaged) {
	answer, err := r.positions.markDamaged(ctx, a)
	if err != nil {
		r.metrics.limit.Do(func() { r.log.Warn("a damaged master of Redis not marked, retrying", "master", a.Master, "err", err) })
	}
	r.tell(rewind.Marked{MarkDamaged: a, Answer: answer})
}

func (r *rewinder) write(ctx context.Context, all []rewind.WritePosition) {
	answer, err := r.positions.write(ctx, all)
	if err != nil {
		r.metrics.limit.Do(func() { r.log.Warn("positions of the command topic not written, retrying", "err", err) })
	}
	for _, w := range all {
		r.tell(rewind.Written{WritePosition: w, Answer: answer})
	}
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

func (r *rewinder) alert(alerts map[rewind.Alert]int64) {
	for a, commands := range alerts {
		switch a.Kind {
		case rewind.Lost:
			r.metrics.gone.Add(float64(max(commands, 1)))
			r.log.Error("commands that Redis may lack are not in the command topic any more: raise its retention", "commands", commands)
		case rewind.Damaged:
			r.metrics.damaged.Inc()
			r.log.Error("a master of Redis does not tell how far it is, or is far behind, as after a restart without its data: what was posted within one order life is read again, what is older may be lost. At the first start with durable classes nothing is",
				"master", a.Master, "commands", commands)
		case rewind.Alternating:
			r.metrics.alternating.Inc()
			r.log.Error("the history of Redis changes again and again: check that its address is that of one master")
		}
	}
}

// rewindMetrics count what a [rewinder] does. Gone, damaged and alternating are alerts.
type rewindMetrics struct {
	changes, rewinds, gone, damaged, alternating prometheus.Counter
	replaced                                     prometheus.Counter
	rewinding, damagedNow, waiting               prometheus.Gauge
	read                                         *prometheus.CounterVec // by result
	running                                      atomic.Bool            // a rewind
	again, lost                                  atomic.Int64           // in it: read again, and applied again
	limit                                        rate.Sometimes
}

func newRewindMetrics(set *metric.Set) *rewindMetrics {
	return &rewindMetrics{limit: logLimit(),
		changes:     set.Counter("era_changes_total", "Changes of the history of a master of Redis, by a failover or a restart, that this writer has seen."),
		rewinds:     set.Counter("rewinds_total", "How often commands were read again because Redis may have lost their changes."),
		rewinding:   set.Gauge("rewinding_partitions", "Partitions of the command topic of which Redis may lack changes: their commands are read again."),
		read:        set.Counters("read_again_total", "Commands of durable classes that were read again after their updates were published, by result: applied (Redis had lost them), duplicate, refused.", "result"),
		gone:        set.Counter("commands_gone_total", "Commands that Redis may lack and the command topic no longer has."),
		replaced:    set.Counter("replaced_partitions_total", "Partitions whose command topic was deleted and made again: commands of the former one that were not read are lost, the new one is read from its beginning."),
		damaged:     set.Counter("masters_damaged_total", "How often a master of Redis did not tell how far it is, or was behind by more than half an order life."),
		damagedNow:  set.Gauge("masters_damaged", "Masters of Redis that may lack boards which the ledger has: rankcache ledger rebuilds these."),
		waiting:     set.Gauge("lost_boards_waiting", "Boards for whose rebuild by the ledger commands of this writer wait."),
		alternating: set.Counter("masters_alternating_total", "Changes of the history of a master of Redis within seconds after another one."),
	}
}

// count counts a command that was read again.
func (m *rewindMetrics) count(o *Outcome) {
	m.again.Add(1)
	m.read.WithLabelValues(o.result()).Inc()
	if o.Refusal == nil && !o.Duplicate {
		m.lost.Add(1)
	}
}
