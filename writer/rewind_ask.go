package writer

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/writer/internal/rewind"
)

// asker does what a [rewind.Machine] asks of Redis and Kafka, and returns the events that come of it.
type asker struct {
	positions positions
	tiers     Tiers
	metrics   *rewindMetrics
	log       *slog.Logger
	logs      logReader // while the writer runs
}

// logReader is the [consumer].
type logReader interface {
	logs(ctx context.Context, life, half time.Duration) (map[int32]rewind.Log, error)
	committedLogs(ctx context.Context) (map[int32]rewind.Log, error)
}

// readEras tells beside the event why Redis may not be asked, if so.
func (k *asker) readEras(ctx context.Context, a rewind.ReadEras) (e rewind.Event, denied error) {
	all, err := k.positions.masters(ctx)
	if redis.HasErrorPrefix(err, "NOPERM") {
		denied = err
	}
	if err != nil {
		return k.failed(a.Round, err), denied
	}
	k.positions.eras.take(all)
	of := make(map[rewind.Master]rewind.Era, len(all))
	for _, m := range all {
		of[m.name] = m.era
	}
	return rewind.ErasRead{Round: a.Round, Eras: of}, nil
}

func (k *asker) readPositions(ctx context.Context, a rewind.ReadPositions) rewind.Event {
	of := make(map[rewind.Master]rewind.Hash, len(a.Eras))
	for master, era := range a.Eras {
		h, ok, err := k.positions.read(ctx, master, era)
		if err != nil {
			return k.failed(a.Round, err)
		}
		if !ok {
			return rewind.Fenced{Round: a.Round, Master: master}
		}
		of[master] = h
	}
	lives := make(map[rewind.Master]string, len(a.Former))
	for _, name := range a.Former {
		h, err := k.positions.hash(ctx, name)
		if err != nil {
			return k.failed(a.Round, err)
		}
		lives[name] = h.Life
	}
	return rewind.PositionsRead{Round: a.Round, Of: of, Lives: lives}
}

func (k *asker) readLog(ctx context.Context, a rewind.ReadLog) rewind.Event {
	of, err := k.logs.logs(ctx, k.orderLife(slices.Max[[]time.Duration]), k.orderLife(slices.Min[[]time.Duration])/2)
	if err != nil {
		return k.failed(a.Round, err)
	}
	return rewind.LogRead{Round: a.Round, Of: of, Rebuilds: keepsLedger(k.tiers.File())}
}

// orderLife returns that of one of the durable classes.
func (k *asker) orderLife(which func([]time.Duration) time.Duration) time.Duration {
	var lives []time.Duration
	for _, c := range k.tiers.File().Classes {
		if c.Durable {
			lives = append(lives, c.Orders)
		}
	}
	if lives == nil { // they are gone; what they have left is still looked after
		lives = append(lives, k.positions.birth.orderLife)
	}
	return which(lives)
}

// failed has what a round has asked for be asked again at a tick.
func (k *asker) failed(round uint64, err error) rewind.Event {
	k.metrics.limit.Do(func() { k.log.Warn("positions of the command topic not read, retrying", "err", err) })
	return rewind.Failed{Round: round}
}

// markDamaged marks a damaged master.
func (k *asker) markDamaged(ctx context.Context, a rewind.MarkDamaged) rewind.Event {
	answer, err := k.positions.markDamaged(ctx, a)
	if err != nil {
		k.metrics.limit.Do(func() { k.log.Warn("a damaged master of Redis not marked, retrying", "master", a.Master, "err", err) })
	}
	return rewind.Marked{MarkDamaged: a, Answer: answer}
}

func (k *asker) write(ctx context.Context, all []rewind.WritePosition) (written []rewind.Event) {
	answer, err := k.positions.write(ctx, all)
	if err != nil {
		k.metrics.limit.Do(func() { k.log.Warn("positions of the command topic not written, retrying", "err", err) })
	}
	for _, w := range all {
		written = append(written, rewind.Written{WritePosition: w, Answer: answer})
	}
	return written
}

func (k *asker) alert(alerts map[rewind.Alert]int64) {
	for a, commands := range alerts {
		switch a.Kind {
		case rewind.Lost:
			k.metrics.gone.Add(float64(max(commands, 1)))
			k.log.Error("commands that Redis may lack are not in the command topic any more: raise its retention", "commands", commands)
		case rewind.Damaged:
			k.metrics.damaged.Inc()
			k.log.Error("a master of Redis does not tell how far it is, or is far behind, as after a restart without its data: what was posted within one order life is read again, what is older may be lost. At the first start with durable classes nothing is",
				"master", a.Master, "commands", commands)
		case rewind.Alternating:
			k.metrics.alternating.Inc()
			k.log.Error("the history of Redis changes again and again: check that its address is that of one master")
		}
	}
}
