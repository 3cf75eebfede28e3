package replay

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rankcache/wire"
)

// slowStates is a keeper's value that takes long to read.
type slowStates struct {
	takes time.Duration
	err   error
}

func (s slowStates) States(ctx context.Context) (wire.States, error) {
	sleep(ctx, s.takes)
	return wire.States{Serial: 7, Every: 300 * time.Millisecond}, s.err
}

// TestSlowKeeper: the totals poller goes back to Redis when its pause is over, though the keeper's value takes longer to read than
// the time between two looks.
func TestSlowKeeper(t *testing.T) {
	for _, err := range []error{nil, errors.New("timeout")} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			p := &totalsPoller{feeds: new(feeds), wake: newSignal(), keeper: &keeperStates{from: slowStates{2 * time.Second, err}, older: 2}}
			p.keeper.seen.Store(time.Now().UnixNano())
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
		k := &keeperStates{from: slowStates{0, errors.New("no value")}, older: 2, looks: []look{{serial: 6, at: time.Now()}, {serial: 7, at: time.Now()}}}
		p := &totalsPoller{feeds: new(feeds), wake: newSignal(), keeper: k}
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
