package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/compare"
	"rankcache/internal/testkit"
)

// fixture is a writer and what a sidecar needs, on the shared real servers.
type fixture struct {
	star, small, blocked rankcache.BoardID
	rooms, classes       string
	common               []string
	writer               *child
}

// newFixture makes a fixture on the shared servers; the writer gets further arguments. With a topic of the ledger the
// boards star and small are of a class that has one.
func newFixture(t *testing.T, writer ...string) *fixture {
	return newFixtureOn(t, testkit.Redis(t), writer...)
}

func newFixtureOn(t *testing.T, redis string, writer ...string) *fixture {
	h := &fixture{star: rankcache.BoardID(testkit.Name(t)), small: rankcache.BoardID(testkit.Name(t)),
		blocked: rankcache.BoardID(testkit.Name(t)), rooms: filepath.Join(t.TempDir(), "rooms.yaml")}
	if slices.Contains(writer, "--topic-ledger") {
		h.classes = fmt.Sprintf("classes:\n- {name: kept, board: %q, period: none, ledger: true}\n", h.star+":{zone}")
		h.star, h.small = h.star+":1", h.star+":2"
	}
	h.nameRooms(t, h.star)
	commands := testkit.Name(t)
	h.common = []string{"--redis", "redis://" + redis, "--kafka", testkit.Kafka(t), "--rooms", h.rooms,
		"--topic-commands", commands, "--redis-timeout", "2s", "--key-rooms", commands + ":rooms"}
	args := append([]string{"write", "--scores", "127.0.0.1:0", "--health", "127.0.0.1:0",
		"--group", commands, "--command-partitions", "1"}, h.common...)
	h.writer = startListening(t, append(args, writer...)...)
	return h
}

// nameRooms writes the rooms file with these super-hot boards.
func (h *fixture) nameRooms(t *testing.T, superHot ...rankcache.BoardID) {
	t.Helper()
	text := fmt.Sprintf("boards:\n- {match: %q, mode: blocked}\n", h.blocked)
	for _, b := range superHot {
		text += fmt.Sprintf("- {match: %q, mode: super-hot}\n", b)
	}
	h.writeRooms(t, text)
}

// writeRooms replaces the rooms file at once, so that no reader sees half of it.
func (h *fixture) writeRooms(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(text, "classes:") {
		text += h.classes
	}
	must(t, os.WriteFile(h.rooms+".new", []byte(text), 0o644))
	must(t, os.Rename(h.rooms+".new", h.rooms))
}

func (h *fixture) redis(t *testing.T) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2})
	t.Cleanup(func() { client.Close() })
	return client
}

func (h *fixture) serve(t *testing.T, more ...string) *child {
	t.Helper()
	args := append([]string{"serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0"}, h.common...)
	return startListening(t, append(args, more...)...)
}

// give posts n gifts of one point each, by n members.
func (h *fixture) give(t *testing.T, board rankcache.BoardID, n int) {
	t.Helper()
	for i := range n {
		body := fmt.Sprintf(`{"order":"%s-%d","board":%q,"member":"m%d","op":"incr","delta":%d}`, testkit.Name(t), i, board, i, i+1)
		testkit.Eventually(t, 30*time.Second, func() error { // the producer needs a moment at the start
			resp, err := http.Post(h.writer.URL("scores", "/v1/scores"), "application/json", strings.NewReader(body))
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if answer, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
				return fmt.Errorf("%s: %s", resp.Status, answer)
			}
			return nil
		})
	}
}

func TestServeAnswersByTier(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.give(t, h.star, 5)
	h.give(t, h.small, 3)
	socket := filepath.Join(t.TempDir(), "data.sock")
	s := h.serve(t, "--socket", socket)
	s.WaitReady(time.Minute)

	page, err := compare.Fetch(t.Context(), http.DefaultClient, s.URL("data", "/v1/boards/"+string(h.star)+"/top"))
	if err != nil {
		t.Fatal(err)
	}
	if page.Source != "local" || page.Seq != 5 || page.Total != 5 || page.Entries[0].Member != "m4" || page.Age == "" {
		t.Errorf("the super-hot board answers %+v", page)
	}
	page, err = compare.Fetch(t.Context(), http.DefaultClient, s.URL("data", "/v1/boards/"+string(h.small)+"/top"))
	if err != nil {
		t.Fatal(err)
	}
	if page.Source != "redis" || page.Total != 3 {
		t.Errorf("the small board answers %+v", page)
	}
	if code, body := s.Get("data", "/v1/boards/"+string(h.blocked)+"/top"); code != http.StatusForbidden || !strings.Contains(body, `"blocked"`) {
		t.Errorf("the blocked board answers %d %s", code, body)
	}
	unix := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	if page, err := compare.Fetch(t.Context(), unix, "http://localhost/v1/boards/"+string(h.star)+"/top"); err != nil || page.Source != "local" {
		t.Errorf("the socket answers %+v, %v", page, err)
	}
	for _, path := range []string{"/status", "/status/" + string(h.star), "/hotkeys", "/rooms", "/metrics"} {
		if code, body := s.Get("admin", path); code != http.StatusOK {
			t.Errorf("admin %s answers %d %s", path, code, body)
		}
	}
}

func TestBoardsComeAndGoWhileRunning(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.give(t, h.star, 2)
	s := h.serve(t)
	s.WaitReady(time.Minute)
	h.give(t, h.small, 3) // before it is super-hot: none of this is in a log
	h.nameRooms(t, h.star, h.small)
	source := func(board rankcache.BoardID, want string) {
		t.Helper()
		testkit.Eventually(t, 30*time.Second, func() error {
			page, err := compare.Fetch(t.Context(), http.DefaultClient, s.URL("data", "/v1/boards/"+string(board)+"/top"))
			if err == nil && page.Source != want {
				err = fmt.Errorf("answered from %s, want %s", page.Source, want)
			}
			return err
		})
	}
	// The writer has to hear of the room too, before its next update is for the log.
	testkit.Eventually(t, 30*time.Second, func() error {
		if text := h.writer.Log(); strings.Count(text, "rooms file in force") < 2 {
			return fmt.Errorf("the writer has not read the new rooms file: %s", text)
		}
		return nil
	})
	h.give(t, h.small, 1)
	source(h.small, "local")
	source(h.star, "local")
	h.nameRooms(t, h.small)
	source(h.star, "redis")
	if code, body := s.Get("health", "/readyz"); code != http.StatusOK {
		t.Errorf("coming and going boards touched readiness: %d %s", code, body)
	}
}
