package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

const recipes = "../../examples/clients/"

// TestClientRecipes runs the programs of docs/CLIENTS.md against a sidecar that is killed and
// started again, and against one that fails a request now and then, or stalls.
func TestClientRecipes(t *testing.T) {
	testkit.FullOnly(t, "programs in four languages, and a sidecar that is killed")
	h := newFixture(t)
	h.give(t, h.star, 3)
	socket, addr := filepath.Join(t.TempDir(), "s"), freePorts(t, "data")["data"]
	all := startRecipes(t, socket, addr, h.star, "")
	start := func() *child {
		s := h.serve(t, "--data", addr, "--socket", socket, "--drain", "0s")
		s.WaitReady(time.Minute)
		return s
	}
	sidecar := start()
	for _, r := range all {
		r.until(t, "local", h.rows(t))
		r.until(t, "unchanged", h.rows(t))
		r.readsItsWrite(t, h)
	}
	sidecar.Kill()
	for _, r := range all {
		r.until(t, "direct", h.rows(t))
	}
	sidecar = start()
	for _, r := range all {
		r.until(t, "local", h.rows(t))
	}
	sidecar.Kill()
	f := newFlaky(t, socket, addr)
	for _, r := range all {
		r.triesTwice(t, f)
	}
	f.stalls.Store(true)
	for _, r := range all { // together, as each waits for its time-outs
		fmt.Fprintln(r.in)
	}
	for _, r := range all {
		if source, _, text := r.answer(t); source != "direct" {
			t.Errorf("%s with a sidecar that stalls: from %s:%s", r.name, source, text)
		}
	}
}

// TestClientRecipesShowWholeScores: what a recipe reads from Redis itself is what the sidecar would show.
func TestClientRecipesShowWholeScores(t *testing.T) {
	board, client := testkit.Name(t), redis.NewClient(&redis.Options{Addr: testkit.Redis(t)})
	t.Cleanup(func() { client.Close() })
	must(t, client.ZAdd(t.Context(), board, redis.Z{Member: "m", Score: wire.TieScore(10, 1, false)}).Err())
	for kind, want := range map[string]string{"integer": " m=10", "": " m=10.999999999998181"} {
		for _, r := range startRecipes(t, filepath.Join(t.TempDir(), "none"), "127.0.0.1:1", rankcache.BoardID(board), kind) {
			if source, _, rows := r.read(t, ""); source != "direct" || rows != want {
				t.Errorf("%s %s: from %s:%s, want%s", r.name, kind, source, rows, want)
			}
		}
	}
}

// TestClientRecipesShowWhoAsks: a recipe that is given a member gives it points, and shows the page with that write, the
// member's rank, neighbours and profile.
func TestClientRecipesShowWhoAsks(t *testing.T) {
	profiles := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"profiles":{"me":{"nick":"Ada"}}}`)
	}))
	t.Cleanup(profiles.Close)
	t.Setenv("RANKCACHE_WRITE_TOKEN", "hush") // of the writer and of the recipes
	h := newFixture(t)
	must(t, h.redis(t).ZAdd(t.Context(), string(h.small), redis.Z{Member: "first", Score: 1e9}, redis.Z{Member: "last", Score: 1}).Err())
	socket, addr := filepath.Join(t.TempDir(), "s"), freePorts(t, "data")["data"]
	h.serve(t, "--data", addr, "--socket", socket, "--profile-url", profiles.URL).WaitReady(time.Minute)
	points := 0
	for _, r := range startRecipes(t, socket, addr, h.small, "number me "+strings.TrimPrefix(h.writer.URL("scores", ""), "http://")) {
		testkit.Eventually(t, 30*time.Second, func() error { // the profile may be late at first
			if fmt.Fprintln(r.in, "+5"); !r.out.Scan() {
				t.Fatalf("%s has ended (%v)", r.name, r.out.Err())
			}
			points += 5
			got := r.out.Text()
			_, rows, _ := strings.Cut(got, ":")
			if want := fmt.Sprintf(" first=1000000000 me=%d last=1 | rank 2, 3 near, Ada", points); wholeNumbers.Replace(rows) != want {
				return fmt.Errorf("%s prints %s, want%s", r.name, got, want)
			}
			return nil
		})
	}
}

// wholeNumbers are scores as Go and Node print them.
var wholeNumbers = strings.NewReplacer("1e+09", "1000000000", "1.0E9", "1000000000", ".0 ", " ")

// rows returns the board in Redis as recipes print it.
func (h *fixture) rows(t *testing.T) (rows string) {
	t.Helper()
	all, err := h.redis(t).ZRevRangeWithScores(t.Context(), string(h.star), 0, 49).Result()
	must(t, err)
	for _, row := range all {
		rows += fmt.Sprintf(" %s=%v", row.Member, row.Score)
	}
	return rows
}

// recipe is a client program that reads the board for each line that it is sent.
type recipe struct {
	name   string
	in     io.Writer
	out    *bufio.Scanner
	errors strings.Builder
}

// startRecipes starts those whose toolchain is here. Java has no HTTP over a Unix socket.
// kind is that of the board's scores, "" or integer.
func startRecipes(t *testing.T, socket, addr string, board rankcache.BoardID, kind string) (all []*recipe) {
	program := filepath.Join(t.TempDir(), "recipe")
	out, err := exec.Command("go", "build", "-o", program, recipes+"go").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct{ name, needs, call string }{
		{"go", "go", program + " " + socket},
		{"python", "python3", "python3 " + recipes + "python/leaderboard.py " + socket},
		{"node", "node", "node " + recipes + "node/leaderboard.mjs " + socket},
		{"java", "javac", "java -XX:TieredStopAtLevel=1 " + recipes + "java/Leaderboard.java " + addr}, // a JRE may have no compiler
	} {
		if hasToolchain("clients/"+c.name, c.needs) {
			all = append(all, startRecipe(t, c.name, append(append(strings.Fields(c.call), testkit.Redis(t), string(board)), strings.Fields(kind)...)))
		}
	}
	return all
}

// hasToolchain reports whether an example can be run, and prints if not.
func hasToolchain(example, needs string) bool {
	_, err := exec.LookPath(needs)
	if err != nil {
		fmt.Fprintf(os.Stderr, "\n*** NOT TESTED: examples/%s: install %s and put it in PATH\n\n", example, needs)
	}
	return err == nil
}

func startRecipe(t *testing.T, name string, call []string) *recipe {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	cmd := exec.CommandContext(ctx, call[0], call[1:]...)
	r := &recipe{name: name}
	cmd.Stderr = &r.errors
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // killed
		if t.Failed() {
			t.Logf("%s: %s", name, &r.errors)
		}
	})
	r.in, r.out = in, bufio.NewScanner(out)
	return r
}

// read has the recipe read the board, with a state or with "", and returns what it prints of it.
func (r *recipe) read(t *testing.T, state string) (source, gotState, rows string) {
	t.Helper()
	fmt.Fprintln(r.in, state)
	return r.answer(t)
}

// answer returns what the recipe prints of the next read.
func (r *recipe) answer(t *testing.T) (source, gotState, rows string) {
	t.Helper()
	if !r.out.Scan() {
		t.Fatalf("%s has ended (%v)", r.name, r.out.Err())
	}
	head, tail, _ := strings.Cut(r.out.Text(), ":")
	source, gotState, _ = strings.Cut(head, " ")
	if source == "error" {
		return source, "", tail
	}
	for row := range strings.FieldsSeq(tail) {
		member, text, _ := strings.Cut(row, "=")
		score, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%s prints %q", r.name, r.out.Text())
		}
		rows += fmt.Sprintf(" %s=%v", member, score)
	}
	return source, gotState, rows
}

// until reads until the answer is that. The first may be late on a machine that is busy.
func (r *recipe) until(t *testing.T, source, rows string) {
	t.Helper()
	testkit.Eventually(t, 30*time.Second, func() error {
		if from, _, got := r.read(t, ""); from != source || got != rows {
			return fmt.Errorf("%s reads%s from %s, want%s from %s", r.name, got, from, rows, source)
		}
		return nil
	})
}

// readsItsWrite: a page that is asked for with the state of a write has it, and one with a state
// that the board was never in is an error.
func (r *recipe) readsItsWrite(t *testing.T, h *fixture) {
	t.Helper()
	wrote := h.write(t, h.star, r.name, 1)
	var source, state, rows string
	testkit.Eventually(t, 30*time.Second, func() error {
		if source, state, rows = r.read(t, wrote.State); source == "error" {
			return fmt.Errorf("%s:%s", r.name, rows)
		}
		return nil
	})
	if !strings.Contains(rows, " "+r.name+"=1") {
		t.Errorf("%s reads%s after its write", r.name, rows)
	}
	if state != "" && state != wrote.State { // "": Redis was asked
		t.Errorf("%s reads the state %s, want %s", r.name, state, wrote.State)
	}
	never := wrote.State[:len(wrote.State)-12] + "000000000000"
	testkit.Eventually(t, 30*time.Second, func() error {
		if source, _, text := r.read(t, never); source != "error" || !strings.Contains(text, "write_lost") {
			return fmt.Errorf("%s: %s%s, want write_lost", r.name, source, text)
		}
		return nil
	})
}

// triesTwice: one failed request is tried again, and after two Redis is asked.
func (r *recipe) triesTwice(t *testing.T, f *flaky) {
	t.Helper()
	for _, c := range []struct {
		unavailable bool
		failures    int32
		want        string
	}{{true, 0, "hot"}, {true, 1, "hot"}, {false, 1, "hot"}, {true, 2, "direct"}} {
		testkit.Eventually(t, 30*time.Second, func() error {
			f.unavailable.Store(c.unavailable)
			f.failures.Store(c.failures)
			if source, _, text := r.read(t, ""); source != c.want {
				return fmt.Errorf("%s after %+v: from %s:%s", r.name, c, source, text)
			}
			return nil
		})
	}
}

// flaky answers as a sidecar does, but fails some requests first.
type flaky struct {
	failures    atomic.Int32
	unavailable atomic.Bool // fails with 503, else by closing the connection
	stalls      atomic.Bool // sends a part of each answer, and no more
}

// newFlaky listens where the sidecar did.
func newFlaky(t *testing.T, socket, addr string) *flaky {
	t.Helper()
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	f := &flaky{}
	server := &http.Server{Handler: f}
	t.Cleanup(func() { server.Close() })
	for _, at := range [][2]string{{"unix", socket}, {"tcp", addr}} {
		ln, err := net.Listen(at[0], at[1])
		must(t, err)
		go server.Serve(ln)
	}
	return f
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch fails := f.failures.Add(-1) >= 0; {
	case f.stalls.Load():
		_, _ = io.WriteString(w, `{"source":"hot",`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case fails && f.unavailable.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
	case fails:
		panic(http.ErrAbortHandler)
	default:
		w.Header().Set("Rankcache-Source", "hot")
		_, _ = io.WriteString(w, `{"source":"hot","entries":[{"rank":1,"member":"m1","score":1}]}`)
	}
}
