package app

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// region is a second region beside a fixture's: a replica of its Redis and a sidecar there. The log is the same.
type region struct {
	*fixture
	*testing.T
	far     *redis.Client
	master  string
	sidecar *child
}

func newRegion(t *testing.T) *region {
	r := &region{T: t, master: testkit.StartRedis(t, servers.RedisOptions{}).Addr()}
	r.fixture = newFixtureOn(t, r.master)
	r.give(t, r.star, 40)
	startListening(t, append([]string{"keep", "--health", "127.0.0.1:0"}, r.common...)...)
	addr := testkit.StartRedis(t, servers.RedisOptions{}).Addr()
	r.far = redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
	t.Cleanup(func() { r.far.Close() })
	r.follow(r.master)
	r.sidecar = r.serveHere()
	r.sidecar.WaitReady(time.Minute)
	return r
}

// serveHere starts a sidecar in the region.
func (r *region) serveHere(args ...string) *child {
	return r.serve(r.T, append([]string{"--redis", "redis://" + r.far.Options().Addr, "--redis-role", "replica"}, args...)...)
}

// follow has the replica follow another server.
func (r *region) follow(addr string) {
	host, port, _ := net.SplitHostPort(addr)
	must(r.T, r.far.ReplicaOf(r.Context(), host, port).Err())
}

// ask returns the status, the body and the age of an answer, which is -1 if it is unknown.
func (r *region) ask(c *child, path string) (status int, body string, age time.Duration) {
	r.Helper()
	res, err := http.Get(c.URL("data", path))
	must(r.T, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	must(r.T, err)
	age = -1
	if ms, err := strconv.Atoi(res.Header.Get("Rankcache-Age-Ms")); err == nil {
		age = time.Duration(ms) * time.Millisecond
	}
	return res.StatusCode, string(text), age
}

// await asks until an answer is as wanted.
func (r *region) await(c *child, path string, status int, text string, is func(age time.Duration) bool) {
	r.Helper()
	testkit.Eventually(r.T, time.Minute, func() error {
		if got, body, age := r.ask(c, path); got != status || !strings.Contains(body, text) || !is(age) {
			return fmt.Errorf("%s: %d, %v old: %s", path, got, age, body)
		}
		return nil
	})
}

func within(least, most time.Duration) func(time.Duration) bool {
	return func(age time.Duration) bool { return age >= least && age <= most }
}

var whatever = func(time.Duration) bool { return true }

// TestRegion: in a region that only reads, lag is no fault, and ages count from what the keeper of the writing region wrote.
func TestRegion(t *testing.T) {
	t.Parallel()
	r := newRegion(t)
	r.give(t, r.small, 5)
	young := within(0, 10*time.Second)
	r.await(r.sidecar, top(r.star, ""), 200, `"source":"local"`, young)
	r.await(r.sidecar, top(r.small, ""), 200, `"total":5`, young)
	r.await(r.sidecar, top(r.star, "&max_age_ms=20000"), 200, "", young)
	r.await(r.sidecar, top(r.star, "&max_age_ms=0"), 503, "ask the writing region", whatever)
	r.await(r.sidecar, top(r.small, "&max_age_ms=0"), 503, "ask the writing region", whatever)
	r.await(r.sidecar, top(r.small, "&min_seq=1000"), 503, "ask the writing region", whatever)

	r.follow("127.0.0.1:1") // the link is cut: the log alone goes on
	cut := time.Now()
	r.give(t, r.star, 41)
	r.await(r.sidecar, top(r.star, ""), 200, `"total":41`, whatever)
	testkit.Eventually(t, time.Minute, func() error {
		for _, id := range []rankcache.BoardID{r.star, r.small} {
			since := time.Since(cut)
			status, body, age := r.ask(r.sidecar, top(id, ""))
			if status != 200 || age < since-300*time.Millisecond {
				t.Fatalf("%v after the link was cut: %d, %v old: %s", since, status, age, body)
			}
			if id == r.star && !strings.Contains(body, `"source":"local"`) {
				t.Fatal(body)
			}
			if since < 3*time.Second {
				return fmt.Errorf("only %v yet", since)
			}
		}
		return nil
	})
	late := r.serveHere("--snapshot-max-age", "1s") // the link is cut for longer
	r.await(late, top(r.small, ""), 503, "ask the writing region", whatever)
	r.await(late, top(r.star, ""), 503, "ask the writing region", whatever)

	r.follow(r.master)
	r.await(r.sidecar, top(r.star, ""), 200, `"source":"local"`, within(0, 2500*time.Millisecond))
	r.await(late, top(r.star, ""), 200, `"total":41`, within(0, time.Second))

	silent := r.serveHere("--hot-instance", testkit.Name(t)) // of which no keeper tells the time
	r.await(silent, top(r.star, ""), 200, `"source":"local"`, within(-1, -1))
	r.await(silent, top(r.star, "&max_age_ms=60000"), 503, "an unknown time", whatever)
}
