package replay

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/internal/tick"
	"rankcache/wire"
)

// modelKeepers are two keepers that both believe that they are elected, and the value that they publish in the model of
// Redis. It implements States.
type modelKeepers struct {
	redis  *modelRedis
	older  uint64 // as Pace has it
	blind  bool   // they publish without a look at the serial
	events bool   // keepers pause and go away, the value is lost or damaged
	end    context.CancelFunc
	ended  sync.WaitGroup

	mu     sync.Mutex
	values [][]byte // that were published, the newest last; empty: there is none
}

func newModelKeepers(w *modelEnv, events bool) *modelKeepers {
	ctx, end := context.WithCancel(context.Background())
	k := &modelKeepers{redis: w.redis, older: 2, events: events, end: end}
	w.redis.slack = staleStates + ownReadings + 2*time.Second
	for i := range 2 {
		rng := w.random(uint64(100 + i))
		k.ended.Go(func() { k.keep(ctx, rng) })
	}
	return k
}

func (k *modelKeepers) stop() {
	k.end()
	k.ended.Wait()
}

// States implements [States].
func (k *modelKeepers) States(ctx context.Context) (s wire.States, err error) {
	err = k.redis.request(ctx, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if err = errors.New("no value"); len(k.values) > 0 {
			s, err = wire.ParseStates(string(k.values[len(k.values)-1]), "model")
		}
	})
	return s, err
}

func (k *modelKeepers) serial() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.values) == 0 {
		return 0
	}
	serial, _ := wire.ParseSerial(string(k.values[len(k.values)-1][wire.SerialFirst : wire.SerialLast+1]))
	return serial
}

// keep reads and publishes until ctx is done.
func (k *modelKeepers) keep(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		before := k.serial()
		tick.Sleep(ctx, rand.N(2*time.Millisecond))
		stamps, err := k.redis.Stamps(ctx, []rankcache.BoardID{modelBoardID})
		k.pause(ctx, rng)
		if err == nil && ctx.Err() == nil {
			k.publish(before, &stamps[0])
		}
		if k.events && rng.IntN(40) == 0 {
			k.harm(rng)
		}
		tick.Sleep(ctx, time.Duration(250+rng.IntN(100))*time.Millisecond)
	}
}

// pause is between a reading and its publication.
func (k *modelKeepers) pause(ctx context.Context, rng *rand.Rand) {
	d := time.Duration(rng.IntN(20)) * time.Millisecond
	switch n := rng.IntN(40); {
	case n == 0 && k.events:
		d = time.Duration(rng.IntN(30_000)) * time.Millisecond
	case n < 5:
		d = time.Duration(rng.IntN(1500)) * time.Millisecond
	}
	tick.Sleep(ctx, d)
}

func (k *modelKeepers) publish(before uint64, s *rankcache.Stamp) {
	now := k.serial()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.blind {
		before = now
	}
	if now != before {
		return
	}
	next := before + 1
	if before == 0 {
		next = uint64(time.Now().UnixMicro())
	}
	board := wire.BoardState{Board: wire.StateKey(string(modelBoardID)), State: s.State, Members: s.Members, Life: s.Life, Primed: s.Primed}
	k.values = append(k.values, wire.AppendStates(nil, "model", next, 300*time.Millisecond, []wire.BoardState{board}))
}

// harm has the value lost, taken back by a failover of its server, or damaged.
func (k *modelKeepers) harm(rng *rand.Rand) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.values)
	if n == 0 {
		return
	}
	switch rng.IntN(4) {
	case 0:
		k.values = nil
	case 1:
		k.values = k.values[:n-rng.IntN(min(n, 4))]
	case 2:
		k.values[n-1] = k.values[n-1][:9+rng.IntN(len(k.values[n-1])-9)]
	case 3:
		damaged := append([]byte(nil), k.values[n-1]...)
		damaged[9+rng.IntN(len(damaged)-9)] ^= 1
		k.values[n-1] = damaged
	}
}

// modelWithKeepers runs a busy board for some seconds without any fault, and returns how often Redis was asked needlessly
// because a keeper's value told of a difference.
func modelWithKeepers(t *testing.T, seed uint64, older uint64, blind bool) (alarms float64) {
	synctest.Test(t, func(t *testing.T) {
		w := newModelEnv(t, seed)
		w.keepers = newModelKeepers(w, false)
		defer w.keepers.stop()
		w.keepers.older, w.keepers.blind = older, blind
		w.changes(50)
		w.rate = 0.3
		w.start()
		defer w.end()
		w.run(20 * time.Second)
		alarms = testutil.ToFloat64(w.side.runner.metrics.doubts.WithLabelValues(resultEqual))
		if alarms == 0 && !w.side.runner.keeper.Expected(time.Now()) { // a false alarm may come before the first use
			w.fail("no value was used")
		}
		if n := w.side.boards.closed(); n > 0 {
			w.fail("closed %d times", n)
		}
	})
	return alarms
}

// Without a loss no value tells of one. It would if a look of one serial less dated readings, or if keepers did not compare the
// serial.
func TestModelKeepersGiveNoFalseAlarm(t *testing.T) {
	for name, c := range map[string]struct {
		older  uint64
		blind  bool
		alarms bool
	}{"as it is": {older: 2}, "a look of one serial less": {older: 1, alarms: true}, "without the comparison": {older: 2, blind: true, alarms: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alarms := 0.
			for seed := range uint64(8) {
				alarms += modelWithKeepers(t, seed, c.older, c.blind)
			}
			if (alarms > 0) != c.alarms {
				t.Errorf("%v false alarms, want some: %v", alarms, c.alarms)
			}
			t.Logf("%v false alarms", alarms)
		})
	}
}
