package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
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
	rooms                string
	common               []string
	writer               *child
}

// newFixture makes a fixture on the shared servers; the writer gets further arguments.
func newFixture(t *testing.T, writer ...string) *fixture {
	return newFixtureOn(t, testkit.Redis(t), writer...)
}

func newFixtureOn(t *testing.T, redis string, writer ...string) *fixture {
	h := &fixture{star: rankcache.BoardID(testkit.Name(t)), small: rankcache.BoardID(testkit.Name(t)),
		blocked: rankcache.BoardID(testkit.Name(t)), rooms: filepath.Join(t.TempDir(), "rooms.yaml")}
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

func TestRoomsCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	var out bytes.Buffer
	must := func(content string) error {
		out.Reset()
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return Run(t.Context(), NewCommand(), []string{"rooms", "check", file, "-o", "json"}, &out, &out)
	}
	if err := must("rooms:\n- {uid: \"88\", mode: super-hot, boards: [\"a\"]}\n"); err != nil {
		t.Fatal(err)
	}
	var got roomsSummary
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Rooms["super-hot"] != 1 || len(got.Boards) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := must("rooms:\n- {uid: 88, mode: hot}\n"); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v, want the line", err)
	}
}

func TestRoomsCheckShowsClasses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	classes := `classes:
- {name: gift-half-hour, board: "gift:{zone}:{period}", period: 30m, tz: Asia/Shanghai}
- {name: total, board: total, period: none}
- {name: fans, board: "fans_{host}", period: none, keep: 8760h}
`
	if err := os.WriteFile(file, []byte(classes), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	now := time.Date(2026, 11, 22, 9, 20, 0, 0, time.UTC)
	if err := checkRooms(&out, file, "text", now); err != nil {
		t.Fatal(err)
	}
	want := file + ` is good: 0 rooms (0 super-hot, 0 hot, 0 blocked), 0 board rules, 3 classes
CLASS           PERIOD  MODE  BOARD                    ENDS                       EXPIRES                                   NEXT BOARD
gift-half-hour  30m     none  gift:{zone}:20261122-35  2026-11-22T17:30:00+08:00  72h0m0s after the period                  gift:{zone}:20261122-36
total           none    none  total                    never                      never, or by --board-life of the writers  
fans            none    none  fans_{host}              never                      8760h0m0s after the last change           
Boards of no class expire never, or by --board-life of the writers.
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	var got roomsSummary
	if err := checkRooms(&out, file, "json", now); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Classes) != 3 || got.Classes[2].Expires != "8760h0m0s after the last change" || !got.Classes[0].Ends.Equal(time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC)) {
		t.Errorf("%s, %v", out.String(), err)
	}
}
