package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// degraded is a fixture whose Redis the test may kill.
type degraded struct {
	*fixture
	t   testing.TB
	hot rankcache.BoardID
	// redis keeps its data over a kill, as a managed one does.
	redis *servers.Redis
}

func newDegraded(t *testing.T, writer ...string) *degraded {
	cache := testkit.StartRedis(t, servers.RedisOptions{Dir: t.TempDir(), Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	d := &degraded{fixture: newFixtureOn(t, cache.Addr(), writer...), t: t, redis: cache}
	if d.hot = rankcache.BoardID(testkit.Name(t)); d.classes != "" {
		d.hot = d.star[:len(d.star)-1] + "3"
	}
	text := fmt.Sprintf("boards:\n- {match: %q, mode: super-hot}\n- {match: %q, mode: hot}\n", d.star, d.hot)
	d.writeRooms(t, text)
	return d
}

// answer is what an app sees of a board's page.
type answer struct {
	status       int
	source, code string
	age          time.Duration // -1 without the header
	retry        string
	seq          uint64
}

func (d *degraded) ask(c *child, board rankcache.BoardID) (a answer) {
	d.t.Helper()
	resp, err := http.Get(c.URL("data", "/v1/boards/"+string(board)+"/top"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	var body struct {
		Source, Code string
		Seq          *uint64
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		d.t.Fatal(err)
	}
	a = answer{status: resp.StatusCode, source: body.Source, code: body.Code, age: -1, retry: resp.Header.Get("Retry-After")}
	if ms, err := strconv.Atoi(resp.Header.Get("Rankcache-Age-Ms")); err == nil {
		a.age = time.Duration(ms) * time.Millisecond
	}
	if body.Seq != nil {
		a.seq = *body.Seq
	}
	return a
}

// until asks until the answer is right, and returns it.
func (d *degraded) until(c *child, board rankcache.BoardID, what string, right func(answer) bool) (a answer) {
	d.t.Helper()
	testkit.Eventually(d.t, time.Minute, func() error {
		if a = d.ask(c, board); !right(a) {
			return fmt.Errorf("%+v, want %s", a, what)
		}
		return nil
	})
	return a
}

func fromLocal(a answer) bool { return a.status == http.StatusOK && a.source == "local" }

func fromRedis(a answer) bool { return a.status == http.StatusOK && a.source == "redis" }

func fromHot(a answer) bool { return a.status == http.StatusOK && a.source == "hot" }

func refused(a answer) bool {
	return a.status == http.StatusServiceUnavailable && a.code == "origin_unavailable" && a.retry != ""
}

// TestAnswersWhileRedisIsAway: with Redis killed the super-hot board goes on from
// memory, older by the second, the hot board's page until its limit, and what only
// Redis knows is refused as such; all without touching readiness, and with Redis
// back as if nothing had been.
func TestAnswersWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	d := newDegraded(t)
	for _, b := range []rankcache.BoardID{d.star, d.hot, d.small} {
		d.give(t, b, 3)
	}
	s := d.serve(t, "--redis-timeout", "200ms", "--hot-stale", "3s")
	s.WaitReady(time.Minute)
	d.until(s, d.star, "the local copy", fromLocal)
	d.until(s, d.hot, "the hot page", fromHot)
	d.until(s, d.small, "Redis", fromRedis)

	if err := d.redis.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	if a := d.ask(s, d.star); !fromLocal(a) || a.seq != 3 {
		t.Errorf("the super-hot board answers %+v", a)
	}
	if a := d.ask(s, d.hot); !fromHot(a) {
		t.Errorf("the hot board answers %+v", a)
	}
	d.until(s, d.small, "a refusal", refused)
	d.until(s, d.hot, "a refusal after its limit", refused)
	if gone := time.Since(killed); gone < 2*time.Second {
		t.Errorf("the hot page was given up after %v", gone)
	}
	a := d.until(s, d.star, "an age that grows", func(a answer) bool { return !fromLocal(a) || a.age >= 4*time.Second })
	if since := time.Since(killed); !fromLocal(a) || a.age > since+2*time.Second {
		t.Errorf("%v after Redis was killed the super-hot board answers %+v", since, a)
	}
	if code, body := s.Get("health", "/readyz"); code != http.StatusOK {
		t.Errorf("readiness fell: %d %s", code, body)
	}

	if err := d.redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.give(t, d.star, 1) // an order applied before, answered by a writer that is back
	d.until(s, d.star, "an age that is small again", func(a answer) bool { return fromLocal(a) && a.age < 2*time.Second })
	d.until(s, d.small, "Redis", fromRedis)
	d.until(s, d.hot, "the hot page", fromHot)
}

// TestHotPagesSurviveARestart: a sidecar that starts while Redis is dead answers the pages of
// hot boards as the one before had them, also after another restart, as old as they are and
// not longer than they may be; with Redis back they are refreshed.
func TestHotPagesSurviveARestart(t *testing.T) {
	t.Parallel()
	d := newDegraded(t)
	d.give(t, d.hot, 3)
	dir := t.TempDir()
	args := func(maxAge string) []string {
		return []string{"--redis-timeout", "200ms", "--drain", "0s", "--snapshot-dir", dir, "--snapshot-every", "100ms", "--snapshot-max-age", maxAge}
	}
	s := d.serve(t, args("10m")...)
	d.until(s, d.hot, "the hot page", fromHot)
	was := time.Now()
	if err := d.redis.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.Signal(syscall.SIGTERM)
		if code := s.Wait(time.Minute); code != cli.ExitOK {
			t.Fatalf("it ended with %d", code)
		}
		s = d.serve(t, args("10m")...)
		a := d.until(s, d.hot, "the page of the process before", fromHot)
		if since := time.Since(was); a.seq != 3 || a.age <= 0 || a.age > since+time.Second {
			t.Errorf("%v after Redis was last read: %+v", since, a)
		}
	}
	short := d.serve(t, args("1ms")...)
	d.until(short, d.hot, "a refusal of what is too old", refused)
	if err := d.redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.until(s, d.hot, "a page that is current", func(a answer) bool { return fromHot(a) && a.age < time.Second })
}

// TestStartWithoutRedis: a sidecar that starts while Redis is dead answers from the
// file of the one before, at once and as old as it is, and is ready; with Redis
// back the board is compared and current again.
func TestStartWithoutRedis(t *testing.T) {
	t.Parallel()
	d := newDegraded(t)
	d.give(t, d.star, 5)
	d.give(t, d.hot, 1)
	dir := filepath.Join(t.TempDir(), "boards")
	first := d.serve(t, "--snapshot-dir", dir, "--drain", "0s")
	first.WaitReady(time.Minute)
	d.until(first, d.star, "the local copy", fromLocal)
	d.until(first, d.hot, "the hot page", fromHot)
	first.Signal(syscall.SIGTERM)
	if code := first.Wait(30 * time.Second); code != cli.ExitOK {
		t.Fatalf("exit code %d", code)
	}
	saved := time.Now()
	if err := d.redis.Kill(); err != nil {
		t.Fatal(err)
	}

	for name, more := range map[string][]string{"Kafka is there": nil, "Kafka is away too": {"--kafka", "127.0.0.1:1"}} {
		s := d.serve(t, append([]string{"--snapshot-dir", dir, "--redis-timeout", "200ms", "--give-up-after", "10m"}, more...)...)
		s.WaitReady(time.Minute)
		a := d.ask(s, d.star)
		if least := time.Since(saved) - time.Second; !fromLocal(a) || a.seq != 5 || a.age < least {
			t.Errorf("%s: answered with %+v, want the file's, at least %v old", name, a, least)
		}
		if _, body := s.Get("admin", "/status/"+string(d.star)); !strings.Contains(body, `"stale"`) {
			t.Errorf("%s: %s", name, body)
		}
		if a := d.ask(s, d.small); !refused(a) {
			t.Errorf("%s: a board without a file answers %+v", name, a)
		}
		s.Kill() // leaves the file as it was
	}
	old := d.serve(t, "--snapshot-dir", dir, "--redis-timeout", "200ms", "--give-up-after", "1s", "--snapshot-max-age", "1ms")
	old.unready("serve", "redis: ")
	if a := d.ask(old, d.star); !refused(a) {
		t.Errorf("a file that is too old answers %+v", a)
	}
	old.Kill()

	s := d.serve(t, "--snapshot-dir", dir, "--redis-timeout", "200ms", "--give-up-after", "10m")
	s.WaitReady(time.Minute)
	if err := d.redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.until(s, d.star, "a current copy", func(a answer) bool { return fromLocal(a) && a.age < 2*time.Second })
	if _, body := s.Get("admin", "/status/"+string(d.star)); !strings.Contains(body, `"open"`) {
		t.Errorf("want it open: %s", body)
	}
	if _, body := s.Get("admin", "/metrics"); !strings.Contains(body, `rankcache_lastgood_loads_total{result="ok"} 1`) ||
		!strings.Contains(body, "rankcache_replay_stale_opens_total 1") {
		t.Error("the file is not counted")
	}
}
