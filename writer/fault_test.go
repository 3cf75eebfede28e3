package writer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

// A writer whose batch waits says so after half a minute, with the words of who refuses it; when it gets on it does not.
func TestStall(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.Kfake(t).Addr(), nil)
	var hook failing
	hook.name.Store(new("evalsha"))
	h.client.AddHook(&hook)
	h.produce(t, h.command("o1", "a"))
	h.run(t)
	testkit.Eventually(t, testTimeout, func() error {
		since := h.stall.applying.Load()
		if since == nil || h.stall.last.Load() == nil {
			return fmt.Errorf("no batch in hand")
		}
		h.stall.applying.Store(new(since.Add(-stallAfter)))
		if err := h.Fault(); err == nil || !strings.Contains(err.Error(), "fails in the test") {
			return fmt.Errorf("fault %v", err)
		}
		return nil
	})
	hook.name.Store(nil)
	h.await(t, "applied", 1)
	testkit.Eventually(t, testTimeout, func() error { return h.Fault() })
	h.stall.publishing.Store(new(time.Now().Add(-stallAfter)))
	if err := h.Fault(); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Error(err)
	}
}
