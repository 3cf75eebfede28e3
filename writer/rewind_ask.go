package writer

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/rooms"
	"rankcache/writer/internal/rewind"
)

// logReader is the [consumer].
type logReader interface {
	logs(ctx context.Context, life, half time.Duration) (map[int32]rewind.Log, error)
	committedLogs(ctx context.Context) (map[int32]rewind.Log, error)
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
