package admission

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/internal/testkit"
)

// TestGrowth decides about boards of which most don't fit, lets boards go that linger or have grown, and gives up waiting for
// memory. The steps of its run are counted at two sizes: see TestNothingGrowsAsASquare.
func TestGrowth(t *testing.T) {
	n := testkit.Growth(t)
	size := &Size{Members: 100, IDBytes: 10}
	ids := func(kind string) (ids []rankcache.BoardID) {
		for i := range n {
			ids = append(ids, rankcache.BoardID(fmt.Sprint(kind, i)))
		}
		return ids
	}
	lingering := decision{budget: int64(n+1) * Estimate(*size), wanted: ids("lingers"), sizes: map[rankcache.BoardID]*Size{}}
	both := decision{budget: lingering.budget, wanted: append(ids("firm"), lingering.wanted...), firm: n, sizes: lingering.sizes}
	for _, id := range both.wanted {
		both.sizes[id] = size
	}
	lingering.decide(time.Now())
	both.before = lingering.verdicts
	both.decide(time.Now())
	demandOf := func(d *decision, boards []rankcache.BoardID) (m demand) {
		for _, id := range boards {
			m = m.with(d.verdicts[id])
		}
		return m
	}
	if got := demandOf(&both, both.wanted[:n]).held; got != int64(n)*Estimate(*size) {
		t.Errorf("the boards that do not linger hold %d bytes, want %d", got, int64(n)*Estimate(*size))
	}
	grown := decision{budget: both.budget / 2, wanted: both.wanted, firm: n, sizes: both.sizes, before: both.verdicts, over: true}
	grown.decide(time.Now())
	if bytes := grown.bytes(); bytes > grown.budget || bytes < grown.budget-2*Estimate(*size) || bytes != demandOf(&grown, grown.wanted).bytes() {
		t.Errorf("the boards take %d bytes, of them there are %d; the budget is %d", bytes, demandOf(&grown, grown.wanted).bytes(), grown.budget)
	}

	a := New(Config{}, prometheus.NewRegistry())
	a.budget, a.held, a.fills.taken = 1, 1, 1 // another one is being filled
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for range n {
		go func() {
			_, err := a.Fill(ctx, "b")
			ended <- err
		}()
	}
	testkit.Eventually(t, time.Minute, func() error {
		if waiting := a.Status().Waiting; waiting < n {
			return fmt.Errorf("%d of %d wait for memory", waiting, n)
		}
		return nil
	})
	cancel()
	for range n {
		if <-ended == nil {
			t.Error("memory was given that there is not")
		}
	}
	if waiting := a.Status().Waiting; waiting > 0 {
		t.Errorf("%d wait still", waiting)
	}
}
