package serve

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// TestEndedBoardsAreLetGo has a sidecar keep 200 boards of a class, which are then not named
// any more: their memory comes back, and their series are gone.
func TestEndedBoardsAreLetGo(t *testing.T) {
	const boards, members = 200, 500
	prefix := "x" + strings.ToLower(rand.Text()[:8]) // of no earlier run's boards
	kafka, cache := testkit.Kfake(t).Addr(), testkit.Redis(t)
	var zones []string
	for i := range boards {
		zones = append(zones, fmt.Sprintf("%q", fmt.Sprint("z", i)))
	}
	path := filepath.Join(t.TempDir(), "rooms.yaml")
	name := func(zones []string) {
		t.Helper()
		text := fmt.Sprintf("classes: [{name: gift, board: %q, period: 1h, lead: 0s, grace: 0s, linger: 0s, mode: super-hot, dims: {zone: [%s]}}]",
			prefix+":{zone}:{period}", strings.Join(zones, ", "))
		must(t, os.WriteFile(path+".new", []byte(text), 0o644))
		must(t, os.Rename(path+".new", path))
	}
	name([]string{`"none"`})
	s, err := NewSidecar([]string{"--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0", "--drain", "0s", "--metrics-boards", "100",
		"--redis", "redis://" + cache, "--kafka", kafka, "--rooms", path, "--key-rooms", testkit.Name(t)}, nil, slog.New(slog.DiscardHandler))
	must(t, err)
	running := s.Rooms.File().Class("gift")
	period, err := running.Calendar().At(time.Now())
	must(t, err)
	if left := time.Until(period.End); left < 2*time.Minute { // the hour must not end meanwhile
		period, err = running.Calendar().At(period.End)
		must(t, err)
		time.Sleep(left)
	}
	all := fillBoards(t, cache, running.Class, period, boards, members)
	testkit.CreateTopic(t, kafka, s.boardLog(all[0]).Topic, 1, nil)
	runSidecar(t, s)
	testkit.Eventually(t, time.Minute, func() error {
		if ready, why := s.Ready(); !ready {
			return fmt.Errorf("not ready: %s", why)
		}
		return nil
	})
	before := heapInUse()

	name(zones)
	testkit.Eventually(t, time.Minute, func() error {
		for _, id := range all {
			if !(OpenBoards{s.Local}).IsOpen(id) {
				return fmt.Errorf("%s is not open", id)
			}
		}
		return nil
	})
	readAll(t, s, all)
	if n := seriesOf(s, prefix); n == 0 {
		t.Fatal("the boards have no series")
	}
	full := heapInUse()

	name([]string{`"none"`})
	testkit.Eventually(t, time.Minute, func() error {
		if n := len(s.Local.All()); n > 1 {
			return fmt.Errorf("%d boards are still in memory", n)
		}
		if n := seriesOf(s, prefix+":z"); n > 0 {
			return fmt.Errorf("%d series of ended boards", n)
		}
		if after := heapInUse(); after-before > (full-before)/5 {
			return fmt.Errorf("heap was %d bytes, %d with the boards, and is %d", before, full, after)
		}
		return nil
	})
	t.Logf("heap: %d KiB, with %d boards %d KiB, after their end %d KiB", before>>10, boards, full>>10, heapInUse()>>10)
}

// fillBoards makes the boards of a period in Redis.
func fillBoards(t *testing.T, addr string, kind *class.Class, p class.Period, boards, members int) (all []rankcache.BoardID) {
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
	t.Cleanup(func() { client.Close() })
	var rows []redis.Z
	for i := range members {
		rows = append(rows, redis.Z{Member: fmt.Sprint("member", i), Score: float64(i)})
	}
	meta := testkit.Meta(1, uint64(members), rows)
	pipe := client.Pipeline()
	for i := range boards {
		b, err := kind.In(map[string]string{"zone": fmt.Sprint("z", i)}, p)
		must(t, err)
		pipe.ZAdd(t.Context(), string(b.ID), rows...)
		pipe.Set(t.Context(), wire.DefaultNames().MetaKey(b.ID), meta, time.Hour)
		all = append(all, b.ID)
	}
	_, err := pipe.Exec(t.Context())
	must(t, err)
	return all
}

// runSidecar runs a sidecar until the end of the test.
func runSidecar(t *testing.T, s *Sidecar) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
}

// readAll reads a page and a standing of each board, which fills the caches.
func readAll(t *testing.T, s *Sidecar, all []rankcache.BoardID) {
	for _, id := range all {
		for _, what := range []string{"/top?limit=500", "/members/member7"} {
			resp, err := http.Get("http://" + s.Addr("data") + "/v1/boards/" + string(id) + what)
			must(t, err)
			resp.Body.Close()
			if source := resp.Header.Get("Rankcache-Source"); source != "local" {
				t.Fatalf("%s%s is answered with %s from %q", id, what, resp.Status, source)
			}
		}
	}
}

// seriesOf counts the series that name a board with the prefix.
func seriesOf(s *Sidecar, prefix string) int {
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(s.shown.gatherer(s.Registry), promhttp.HandlerOpts{}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return strings.Count(rec.Body.String(), `board="`+prefix)
}

// heapInUse returns the bytes that are in use after a collection.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // what the first one has let finalizers and pools go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
