package replay

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/localboard"
	"rankcache/rooms"
)

// askedOf is a Redis that notes which boards' states are asked for, and tells none.
type askedOf struct {
	Origin
	boards []rankcache.BoardID
	times  []time.Time
}

func (o *askedOf) Stamps(_ context.Context, ids []rankcache.BoardID) ([]rankcache.Stamp, error) {
	o.boards, o.times = append(o.boards, ids...), append(o.times, time.Now())
	return make([]rankcache.Stamp, len(ids)), nil
}

func (o *askedOf) Histories(context.Context, []rankcache.BoardID, bool) ([]string, error) {
	return nil, nil
}

// A board that was written through this process is looked at at once, though no look is due: it alone, only while it is
// open, and every 50 ms at most.
func TestLookAtWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := new(askedOf)
		r := &Runner{members: newMembership(new(feeds)), common: common{origin: redis, boards: localSet{localboard.NewBoards()}, metrics: newMetrics(),
			log: slog.New(slog.DiscardHandler), totalsWake: newSignal(), topicsWake: newSignal(), written: newWrittenHere()}}
		r.members.feeds = &r.feeds
		logs := func(rankcache.BoardID) rooms.Log { return rooms.Log{Topic: "all", Shared: true} }
		r.members.want([]rankcache.BoardID{"written", "other", "closed"})
		r.members.update(logs, func(id rankcache.BoardID) *followed {
			return &followed{feed: newFeed(id, logs(id), r.boards, new(atomic.Int64), r.metrics, time.Now())}
		})
		for _, b := range []rankcache.BoardID{"written", "other"} {
			f := r.feeds.current()[b]
			f.replica.board.Sum()
			if !f.replica.open(f.replica.currentEpoch(), opening{equalAt: time.Now(), equalTo: &rankcache.State{HasSum: true}}) {
				t.Fatal("it does not open")
			}
		}
		p, begun := newTotalsPoller(&r.common, NewPace[map[*feed]probe](rand.Float64)), time.Now()
		go func() {
			time.Sleep(time.Second)
			for range 100 { // over a second
				r.Written("closed")
				r.Written("written")
				r.Written("unknown")
				time.Sleep(10 * time.Millisecond)
			}
		}()
		p.listen(t.Context(), time.Hour)
		if slices.ContainsFunc(redis.boards, func(b rankcache.BoardID) bool { return b != "written" }) {
			t.Errorf("it looked at %v", redis.boards)
		}
		if n := len(redis.times); n < 20 || n > 22 || redis.times[0] != begun.Add(time.Second) {
			t.Errorf("it looked %d times, first after %v", n, redis.times[0].Sub(begun))
		}
		if d := time.Since(begun); d != time.Hour {
			t.Errorf("the next look came after %v", d)
		}
	})
}
