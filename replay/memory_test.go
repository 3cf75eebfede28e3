package replay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit"
)

// A board is filled when there is memory, and until then its status has the reason and it does not hold
// readiness beyond its deadline.
func TestFillingWaitsForMemory(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	b := e.newBoard(1, nil)
	b.produce(b.gifts(100, 10)...)
	free, given := make(chan struct{}), make(chan struct{}, 100)
	memory := func(ctx context.Context, id rankcache.BoardID) (func(), error) {
		select {
		case <-free:
			return func() { given <- struct{}{} }, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s := e.start(ids(b), deadline(time.Second), func(with *setup) { with.Memory = memory })
	testkit.Eventually(t, timeout, func() error {
		if st := s.status(b.id); st.State != rankcache.StateGivenUp || !strings.Contains(st.Reason, "waits for memory") {
			return fmt.Errorf("the board is %s: %s", st.State, st.Reason)
		}
		return nil
	})
	if ready, reason := s.Ready(); !ready {
		t.Errorf("not ready: %s", reason)
	}
	close(free)
	s.waitOpen(b.id)
	if len(given) == 0 {
		t.Error("the memory was not given back")
	}
}
