package app

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

// TestPodBeginsWithASnapshot: a keeper saves a board, and a sidecar that starts without files reads nothing of its
// log that is older. While Redis is away it answers what was saved, as old as it is.
func TestPodBeginsWithASnapshot(t *testing.T) {
	t.Parallel()
	d := newDegraded(t)
	d.give(t, d.star, 5)
	url := "file://" + t.TempDir()
	keeper := startListening(t, append([]string{"keep", "--health", "127.0.0.1:0", "--snapshots", url, "--snapshot-every", "100ms"}, d.common...)...)
	saved := filepath.Join(url[len("file://"):], "*", string(d.star)+".board")
	testkit.Eventually(t, time.Minute, func() error {
		found, err := filepath.Glob(saved)
		if err == nil && len(found) == 0 {
			err = os.ErrNotExist
		}
		return err
	})
	s := d.serve(t, "--snapshots", url)
	s.WaitReady(time.Minute)
	if a := d.ask(s, d.star); !fromLocal(a) || a.seq != 5 {
		t.Errorf("answered with %+v", a)
	}
	_, body := s.Get("admin", "/metrics")
	for _, want := range []string{`rankcache_snapshots_loads_total{result="ok"} 1`, "rankcache_replay_records_total 0"} {
		if err := contains(body, want); err != nil {
			t.Errorf("no %q in the metrics", want)
		}
	}
	if code, body := keeper.Get("health", "/metrics"); code != http.StatusOK || contains(body, `rankcache_snapshots_saves_total{result="ok"}`) != nil {
		t.Errorf("the keeper's metrics: %d", code)
	}
	if err := d.redis.Kill(); err != nil {
		t.Fatal(err)
	}
	s = d.serve(t, "--snapshots", url, "--redis-timeout", "200ms", "--give-up-after", "10m")
	s.WaitReady(time.Minute)
	if a := d.ask(s, d.star); !fromLocal(a) || a.seq != 5 {
		t.Errorf("while Redis is away: %+v", a)
	}
}
