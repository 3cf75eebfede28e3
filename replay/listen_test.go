package replay

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"rankcache/internal/tick"
	"rankcache/wire"
)

// slowStates is a keeper's value that takes long to read.
type slowStates struct {
	takes time.Duration
	err   error
}

func (s slowStates) States(ctx context.Context) (wire.States, error) {
	tick.Sleep(ctx, s.takes)
	return wire.States{Serial: 7, Every: 300 * time.Millisecond}, s.err
}

// TestSlowKeeper: the totals poller goes back to Redis when its pause is over, though the keeper's value takes longer to read than
// the time between two looks.
func TestSlowKeeper(t *testing.T) {
	for _, err := range []error{nil, errors.New("timeout")} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			p := newTotalsPoller(&common{totalsWake: newSignal(), written: newWrittenHere(), cfg: Config{States: slowStates{2 * time.Second, err}}}, NewPace[map[*feed]probe](rand.Float64))
			p.keeper.Used(time.Now())
			p.listen(ctx, time.Second)
			if ctx.Err() != nil {
				t.Errorf("it never looked after itself (%v)", err)
			}
		})
	}
}

// TestKeeperIsGone: what was seen before a keeper went away holds no boards that have been let go since.
func TestKeeperIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewPace[map[*feed]probe](rand.Float64)
		for serial := range uint64(2) {
			k.Heard(Look[map[*feed]probe]{Serial: 6 + serial, At: time.Now()}, 0)
		}
		p := newTotalsPoller(&common{cfg: Config{States: slowStates{0, errors.New("no value")}}}, k)
		p.look(t.Context())
		if len(k.looks) == 0 {
			t.Error("a value may follow that one of them dates")
		}
		time.Sleep(k.stale() + time.Second)
		p.look(t.Context())
		if len(k.looks) != 0 {
			t.Errorf("%d looks are kept", len(k.looks))
		}
	})
}
