package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/operate"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

const testToken = "correct horse"

// rankcacheRooms runs rankcache rooms against a child.
func rankcacheRooms(t *testing.T, c *child, args ...string) string {
	t.Helper()
	out, err := tryRooms(t, c, args...)
	if err != nil {
		t.Fatalf("rooms %v: %v", args, err)
	}
	return out
}

func tryRooms(t *testing.T, c *child, args ...string) (string, error) {
	t.Helper()
	return tryAdmin(t, c, append([]string{"rooms"}, args...)...)
}

// tryAdmin runs a command of rankcache against the admin port of a child.
func tryAdmin(t *testing.T, c *child, args ...string) (string, error) {
	t.Helper()
	settings := filepath.Join(t.TempDir(), "rankcache.yaml")
	must(t, os.WriteFile(settings, []byte("admin-token: "+testToken+"\n"), 0o600))
	var out bytes.Buffer
	err := cli.Run(t.Context(), NewCommand(), append(args, "--admin", c.URL("admin", ""), "--config", settings), &out, &out)
	return out.String(), err
}

// answers returns the status code and source of a board's page.
func (c *child) answers(board rankcache.BoardID) (int, string) {
	code, body := c.Get("data", "/v1/boards/"+string(board)+"/top")
	var page struct{ Source string }
	json.Unmarshal([]byte(body), &page)
	return code, page.Source
}

func (c *child) waitSource(board rankcache.BoardID, want string) {
	c.t.Helper()
	testkit.Eventually(c.t, 30*time.Second, func() error {
		if code, source := c.answers(board); source != want {
			return fmt.Errorf("%s is answered with %d from %q, want %s", board, code, source, want)
		}
		return nil
	})
}

// TestAQuietBoardBecomesSuperHot: a board that nobody changes gets its topic from the writers when it is named at run time, and
// is filled from Redis.
func TestAQuietBoardBecomesSuperHot(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.give(t, h.small, 3)
	s := h.serve(t, "--admin-token", testToken)
	s.waitSource(h.small, "redis")
	rankcacheRooms(t, s, "set", "--match", string(h.small), "--mode", "super-hot")
	s.waitSource(h.small, "local")
	if _, body := s.Get("data", "/v1/boards/"+string(h.small)+"/top"); !strings.Contains(body, `"total":3`) {
		t.Errorf("%s", body)
	}
}

// TestAdminPortRefusesOtherArguments: no other room is taken back, and none set, because an argument was not understood.
func TestAdminPortRefusesOtherArguments(t *testing.T) {
	t.Parallel()
	s := needy(t, "serve", "redis://"+testkit.Redis(t), "127.0.0.1:1", "--admin-token", testToken)
	for request, argument := range map[string]string{
		"DELETE /rooms?uid=88&uid=99":          "uid",
		"DELETE /rooms?uid=88&match":           "match",
		"DELETE /rooms?uid=88&mode=hot":        "mode",
		"DELETE /rooms/bypass?board=b&board=c": "board",
		"DELETE /rooms/bypass?board=b&all=":    "all",
		"POST /rooms?uid=88":                   "uid",
		"PUT /classes?dry_run=1":               "dry_run",
		"DELETE /classes?name=gift":            "name",
		"GET /hotkeys?limit=1":                 "limit",
		"GET /history?since=1":                 "since",
		"GET /events?level=warn":               "level",
		"POST /boards/b/compare?limit=1":       "limit",
		"DELETE /profiles/m?all=1":             "all",
		"GET /runbooks.md?x":                   "x",
		"GET /config?secrets=1":                "secrets",
		"POST /rooms/bypass?board=b&for=10m":   "board",
		"GET /classes?name=gift&name=gift":     "name",
		"GET /rooms?uid=1":                     "uid",
	} {
		method, target, _ := strings.Cut(request, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL("admin", target), strings.NewReader("{}"))
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+testToken)
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		var p struct{ Code, Argument string }
		err = json.NewDecoder(resp.Body).Decode(&p)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusBadRequest || p.Code != "bad_argument" || p.Argument != argument {
			t.Errorf("%s: %d %+v, %v", request, resp.StatusCode, p, err)
		}
	}
}

// TestARoomSetOnOneSidecarActsOnAll: what is posted to one sidecar acts there at
// once and on the other with its next look, writer included.
func TestARoomSetOnOneSidecarActsOnAll(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.give(t, h.star, 2)
	h.give(t, h.small, 3)
	here, there := h.serve(t, "--admin-token", testToken), h.serve(t, "--admin-token", testToken)
	here.WaitReady(time.Minute)
	there.WaitReady(time.Minute)

	if out := rankcacheRooms(t, here, "set", "--match", string(h.small), "--mode", "blocked"); !strings.Contains(out, "is blocked on all sidecars") {
		t.Errorf("set prints %s", out)
	}
	set := time.Now()
	if code, _ := here.answers(h.small); code != http.StatusForbidden {
		t.Errorf("the sidecar that got the change answers %d with the next request, want 403", code)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if code, _ := there.answers(h.small); code != http.StatusForbidden {
			return fmt.Errorf("the other sidecar answers %d", code)
		}
		return nil
	})
	t.Logf("the other sidecar acted after %v; within 2 s is what the pace of the looks makes of it", time.Since(set))

	rankcacheRooms(t, there, "set", "88", "--mode", "super-hot", "--boards", string(h.small)) // the pattern still blocks
	rankcacheRooms(t, there, "delete", "--match", string(h.small))
	h.waitWriter(t, "entries\":1")
	h.give(t, h.small, 1) // an update for the log
	here.waitSource(h.small, "local")
	there.waitSource(h.small, "local")
	checkBypass(t, here, there, h.small)
	rankcacheRooms(t, here, "delete", "88")
	if _, source := here.answers(h.small); source != "redis" {
		t.Errorf("the board is still answered from %s", source)
	}
	if _, err := tryRooms(t, here, "delete", "88"); err == nil || !strings.Contains(err.Error(), "room:88") {
		t.Errorf("deleted twice: %v", err)
	}
	checkOverridden(t, h, here)
	checkClasses(t, h, here, there)
}

// checkClasses: a class that is set on one sidecar is known to the other and to the writer.
func checkClasses(t *testing.T, h *fixture, here, there *child) {
	t.Helper()
	classes := func(s *child, args ...string) (string, error) {
		t.Helper()
		return tryAdmin(t, s, append([]string{"classes"}, args...)...)
	}
	file := filepath.Join(t.TempDir(), "classes.yaml")
	set := func(period string) (string, error) {
		text := fmt.Sprintf(`classes: [{name: live, board: "live:%s:{period}", period: %s}]`, h.small, period)
		must(t, os.WriteFile(file, []byte(text), 0o600))
		return classes(here, "set", file)
	}
	if out, err := set("year"); err != nil || !strings.Contains(out, "dynamic") {
		t.Errorf("set: %v, %s", err, out)
	}
	h.waitWriter(t, `"classes":1`)
	url, body := h.writer.URL("scores", "/v1/scores"), `{"order":"c-1","class":"live","dims":{},"member":"m1","op":"incr","delta":1}`
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("a command for the class: %d", resp.StatusCode)
	}
	testkit.Eventually(t, 30*time.Second, func() error {
		if code, body := there.Get("data", "/v1/classes/live/top"); code != http.StatusOK || !strings.Contains(body, `"member":"m1"`) {
			return fmt.Errorf("the other sidecar answers %d: %s", code, body)
		}
		return nil
	})
	if _, err := set("month"); err == nil || !strings.Contains(err.Error(), `line 1: class live: period can't change from "year" to "month"`) {
		t.Errorf("another period under the name: %v", err)
	}
	if out, err := classes(there, "list", "-o", "json"); err != nil || !strings.Contains(out, `"document":"classes: [{name: live`) {
		t.Errorf("list: %v, %s", err, out)
	}
	if _, err := classes(there, "delete"); err != nil {
		t.Errorf("delete: %v", err)
	}
	if code, _ := there.Get("data", "/v1/classes/live/top"); code != http.StatusNotFound {
		t.Errorf("the deleted class is read with %d", code)
	}
}

// checkBypass: what is bypassed on one sidecar is answered by Redis on both, which stay
// ready, and is shown wherever operators look, until it is ended.
func checkBypass(t *testing.T, here, there *child, board rankcache.BoardID) {
	t.Helper()
	text := " bypassed until "
	if out := rankcacheRooms(t, here, "bypass", string(board), "--for", "5m", "--by", "alice"); !strings.Contains(out, string(board)+" is"+text) || !strings.Contains(out, "by alice") {
		t.Errorf("bypass prints %s", out)
	}
	if _, source := here.answers(board); source != "redis" {
		t.Errorf("the sidecar that took the bypass answers the next request from %s", source)
	}
	there.waitSource(board, "redis")
	if out := rankcacheRooms(t, there, "list"); !strings.Contains(out, text) {
		t.Errorf("list prints\n%s", out)
	}
	for path, want := range map[string]string{"/status": `"bypasses":[{"board":"` + string(board) + `","by":"alice"`,
		"/status/" + string(board): `"bypass":{"board"`, "/metrics": "\nrankcache_bypassed_boards 1\n", "/readyz": `"state":"ready"`} {
		if code, body := there.Get("admin", path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s answers %d without %s:\n%s", path, code, want, body)
		}
	}
	rankcacheRooms(t, there, "bypass", string(board), "--off")
	here.waitSource(board, "local")
	if out := rankcacheRooms(t, here, "bypass", "--all", "--for", "5m"); !strings.Contains(out, "all boards are"+text) {
		t.Errorf("bypass --all prints %s", out)
	}
	there.waitSource(board, "redis")
	rankcacheRooms(t, here, "bypass", "--all", "--off")
	there.waitSource(board, "local")
}

// waitWriter waits until the writer's log has text.
func (h *fixture) waitWriter(t *testing.T, text string) {
	t.Helper()
	testkit.Eventually(t, 30*time.Second, func() error {
		if !strings.Contains(h.writer.Log(), text) {
			return fmt.Errorf("the writer has not logged %s: %s", text, h.writer.Log())
		}
		return nil
	})
}

// checkOverridden: the file, which makes star super-hot, wins.
func checkOverridden(t *testing.T, h *fixture, s *child) {
	t.Helper()
	if out := rankcacheRooms(t, s, "set", "--match", string(h.star), "--mode", "blocked"); !strings.Contains(out, "the rooms file sets another mode") {
		t.Errorf("set prints %s", out)
	}
	if code, source := s.answers(h.star); code != http.StatusOK || source != "local" {
		t.Errorf("the file's board answers %d from %s", code, source)
	}
	if out := rankcacheRooms(t, s, "list"); !strings.Contains(out, "dynamic (overridden)") {
		t.Errorf("list prints\n%s", out)
	}
	var list operate.RoomsAnswer
	if err := json.Unmarshal([]byte(rankcacheRooms(t, s, "list", "-o", "json")), &list); err != nil || len(list.Boards) != 3 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestOnlyTheTokenSetsRooms on the real command.
func TestOnlyTheTokenSetsRooms(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for token, want := range map[string]int{"": http.StatusUnauthorized, testToken: http.StatusUnauthorized} {
		s := h.serve(t, "--admin-token", token)
		for _, change := range []string{"POST /rooms", "DELETE /rooms?uid=88", "PUT /classes", "DELETE /classes"} {
			method, target, _ := strings.Cut(change, " ")
			req, err := http.NewRequest(method, s.URL("admin", target), strings.NewReader(`{"uid":"88","mode":"blocked"}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer ")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("token %q: %s answers %d", token, change, resp.StatusCode)
			}
		}
	}
}

// configMap is a folder as a kubelet keeps it: files are links through ..data,
// which is replaced by a rename.
type configMap struct {
	t          *testing.T
	dir        string
	generation int
}

func (m *configMap) file() string { return filepath.Join(m.dir, "rooms.yaml") }

func (m *configMap) put(content string) {
	m.t.Helper()
	m.generation++
	name := fmt.Sprintf("..2026_01_01_00_00_00.%d", m.generation)
	old, _ := os.Readlink(filepath.Join(m.dir, "..data"))
	must(m.t, os.Mkdir(filepath.Join(m.dir, name), 0o755))
	must(m.t, os.WriteFile(filepath.Join(m.dir, name, "rooms.yaml"), []byte(content), 0o644))
	must(m.t, os.Symlink(name, filepath.Join(m.dir, "..data_tmp")))
	must(m.t, os.Rename(filepath.Join(m.dir, "..data_tmp"), filepath.Join(m.dir, "..data")))
	if old == "" {
		must(m.t, os.Symlink("..data/rooms.yaml", m.file()))
	} else {
		must(m.t, os.RemoveAll(filepath.Join(m.dir, old)))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestConfigMapSwapsUnderLoad changes a mounted rooms file while requests are
// answered: none of them fails.
func TestConfigMapSwapsUnderLoad(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	mount := &configMap{t: t, dir: t.TempDir()}
	star := fmt.Sprintf("- {match: %q, mode: super-hot}\n", h.star)
	mount.put("boards:\n" + star)
	h.common = append(h.common, "--rooms", mount.file())
	h.give(t, h.star, 5)
	h.give(t, h.small, 3)
	s := h.serve(t, "--hot-promote-rate", "1e9") // only the file makes a board hot
	s.WaitReady(time.Minute)
	load := startReads(t, s, h.star, h.small)

	mount.put(fmt.Sprintf("boards:\n%s- {match: %q, mode: super-hot}\n", star, h.small))
	h.nameRooms(t, h.star, h.small) // the writer's own file
	h.waitWriter(t, "rules\":3")
	h.give(t, h.small, 1) // an update for the log
	s.waitSource(h.small, "local")
	s.waitBytes(h.small, true)

	mount.put("boards:\n- {match: 1_2_3, mode: super-hot}\n") // not in quotes
	s.waitStatus("rooms_file.error", mount.file()+": rooms file: line 2: want a string in quotes, such as \"1_2_3\"")
	if code, body := s.Get("admin", "/metrics"); code != 200 || !strings.Contains(body, "\nrankcache_rooms_file_bad 1\n") {
		t.Errorf("metrics answer %d without rankcache_rooms_file_bad 1", code)
	}
	s.waitSource(h.star, "local")

	mount.put("boards:\n" + star)
	s.waitSource(h.small, "redis")
	s.waitBytes(h.small, false)
	testkit.Eventually(t, 30*time.Second, func() error { // the error is gone, and with it its path
		if _, body := s.Get("admin", "/status"); strings.Contains(body, "rooms file: line 2") {
			return fmt.Errorf("the error is still there: %s", body)
		}
		return nil
	})

	mount.put(fmt.Sprintf("boards:\n%s- {match: %q, mode: hot}\n", star, h.small))
	s.waitSource(h.small, "hot")
	load.stop(t)

	mount.put(fmt.Sprintf("boards:\n%s- {match: %q, mode: blocked}\n", star, h.small))
	testkit.Eventually(t, 10*time.Second, func() error {
		if code, _ := s.answers(h.small); code != http.StatusForbidden {
			return fmt.Errorf("a blocked board answers %d", code)
		}
		return nil
	})
}

// waitStatus waits until a field of /status has a value.
func (c *child) waitStatus(path, want string) {
	c.t.Helper()
	testkit.Eventually(c.t, 30*time.Second, func() error {
		if code, body := c.Get("admin", "/status?expect="+url.QueryEscape(path+"="+want)); code != http.StatusOK {
			return fmt.Errorf("%s is not %s: %d %s", path, want, code, body)
		}
		return nil
	})
}

// waitBytes waits until the metrics have the board's memory, or no longer.
func (c *child) waitBytes(board rankcache.BoardID, want bool) {
	c.t.Helper()
	testkit.Eventually(c.t, 10*time.Second, func() error {
		_, body := c.Get("admin", "/metrics")
		if got := strings.Contains(body, fmt.Sprintf("rankcache_board_bytes{board=%q} ", board)); got != want {
			return fmt.Errorf("bytes of %s are in the metrics: %v, want %v", board, got, want)
		}
		return nil
	})
}

// steadyLoad is a load of requests of which none may fail.
type steadyLoad struct {
	quit chan struct{}
	all  sync.WaitGroup

	mu     sync.Mutex
	done   int
	failed []string
}

// startReads asks for the boards in turn, with a few connections.
func startReads(t *testing.T, c *child, boards ...rankcache.BoardID) *steadyLoad {
	return startLoad(t, func(_, i int) (int, string) {
		return c.Get("data", "/v1/boards/"+string(boards[i%len(boards)])+"/top?limit=3")
	})
}

// startLoad calls ask, which returns status and body, from a few goroutines with
// their number and the request's.
func startLoad(t *testing.T, ask func(caller, i int) (int, string)) *steadyLoad {
	r := &steadyLoad{quit: make(chan struct{})}
	for caller := range 4 {
		r.all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-r.quit:
					return
				default:
				}
				r.note(ask(caller, i))
			}
		})
	}
	t.Cleanup(func() { r.end() })
	return r
}

func (r *steadyLoad) note(code int, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	if code != http.StatusOK && len(r.failed) < 5 {
		r.failed = append(r.failed, fmt.Sprintf("%d %s", code, body))
	}
}

func (r *steadyLoad) end() {
	select {
	case <-r.quit:
	default:
		close(r.quit)
	}
	r.all.Wait()
}

// stop ends the load and fails the test if a request did.
func (r *steadyLoad) stop(t *testing.T) {
	t.Helper()
	r.end()
	if len(r.failed) > 0 || r.done < 100 {
		t.Errorf("of %d requests failed: %q", r.done, r.failed)
	}
	t.Logf("%d requests, none failed", r.done)
}

// TestRoomsThatRedisNamesAreKept: without Redis a sidecar that starts answers boards of rooms that
// were set at run time from their files, as it does those of the rooms file.
func TestRoomsThatRedisNamesAreKept(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.give(t, h.star, 2)
	h.give(t, h.small, 3)
	dir := t.TempDir()
	args := []string{"--admin-token", testToken, "--snapshot-dir", dir, "--snapshot-every", "100ms"}
	first := h.serve(t, args...)
	first.WaitReady(time.Minute)
	room, client := testkit.Name(t), h.redis(t)
	must(t, client.SAdd(t.Context(), wire.DefaultNames().RoomKey(room), string(h.small)).Err())
	rankcacheRooms(t, first, "set", room, "--mode", "super-hot")
	testkit.Eventually(t, time.Minute, func() error { // the writer has the board's topic with its first change that it knows to be of such a room
		h.give(t, h.small, 1)
		if code, source := first.answers(h.small); source != "local" {
			return fmt.Errorf("%d from %q", code, source)
		}
		return nil
	})
	testkit.Eventually(t, 30*time.Second, func() error {
		data, err := os.ReadFile(filepath.Join(dir, "rooms.json"))
		if err == nil && !strings.Contains(string(data), string(h.small)) {
			err = fmt.Errorf("kept: %s", data)
		}
		return err
	})
	first.Signal(syscall.SIGTERM)
	first.Wait(time.Minute)
	again := h.serve(t, append(args, "--redis", "redis://127.0.0.1:1")...)
	again.waitSource(h.star, "local")
	again.waitSource(h.small, "local")
}
