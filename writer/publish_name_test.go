package writer

import (
	"context"
	"errors"
	"testing"
	"time"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// Who names the masters for several, and has no more time, ends nobody else's work: a batch that gets his error ends the writer.
func TestNamingOutlivesWhoBegan(t *testing.T) {
	t.Parallel()
	d := newDurable(t, testkit.StartRedis(t, servers.RedisOptions{}), testkit.Kfake(t).Addr())
	d.run(t)
	d.post(t, 1)
	var of *round
	testkit.Eventually(t, testTimeout, func() error {
		if of = d.rewinds.round.Load(); of.list == "" {
			return errors.New("no masters are known")
		}
		return nil
	})
	testkit.Eventually(t, testTimeout, func() error {
		d.named.Store(nil)
		began, over, shared := make(chan struct{}), make(chan struct{}), make(chan bool)
		go func() {
			_, _, by := d.naming.Do(of.list, func() (any, error) {
				close(began)
				<-over
				return nil, context.DeadlineExceeded
			})
			shared <- by
		}()
		<-began
		time.AfterFunc(100*time.Millisecond, func() { close(over) })
		if err := d.nameFirst(t.Context(), d.producer.Load(), []message{{topic: d.opts.Names.Ledger}}); err != nil || d.named.Load() != of {
			t.Errorf("%v, named: %t", err, d.named.Load() == of)
		}
		if !<-shared {
			return errors.New("it came too late to wait for the other")
		}
		return nil
	})
}
