package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit"
)

const liveExamples = "../../examples/live/"

// TestLiveExamples runs the programs of examples/live and examples/webapp against a sidecar that
// is killed and started again, and the programs against a script of events.
func TestLiveExamples(t *testing.T) {
	testkit.FullOnly(t, "programs in four languages, and a sidecar that is killed")
	h := newFixture(t)
	h.give(t, h.star, 3)
	addr := freePorts(t, "rpc")["rpc"]
	all := startLiveExamples(t, addr, h.star)
	start := func() *child {
		s := h.serve(t, "--rpc", addr, "--drain", "0s")
		s.WaitReady(time.Minute)
		return s
	}
	sidecar := start()
	restart := func(meanwhile func()) {
		sidecar.Kill()
		meanwhile()
		sidecar = start()
	}
	all.show(t, h)
	h.give(t, h.star, 5)
	all.show(t, h)
	restart(func() { h.give(t, h.star, 7) })
	all.show(t, h)
	t.Run("WebApp", func(t *testing.T) {
		app := startWebApp(t, addr, h.star)
		app.holdsOneStream(t, sidecar, len(all)+1)
		app.movesRows(t, h, restart)
	})
	sidecar.Kill()
	playScript(t, addr, all)
}

// liveExample is a program that prints the page of a board at each event.
type liveExample struct {
	name   string
	errors strings.Builder
	mu     sync.Mutex
	lines  []string
}

type liveExampleSet []*liveExample

// startLiveExamples starts those whose toolchain is here.
func startLiveExamples(t *testing.T, addr string, board rankcache.BoardID) (all liveExampleSet) {
	for _, c := range []struct{ name, needs, call string }{
		{"go", "go", buildExample(t, "live/go")},
		{"python", "python3", "python3 " + liveExamples + "python/live.py"},
		{"node", "node", "node " + liveExamples + "node/live.mjs"},
		{"java", "javac", "java -XX:TieredStopAtLevel=1 " + liveExamples + "java/Live.java"}, // a JRE may have no compiler
	} {
		if hasToolchain("live/"+c.name, c.needs) {
			all = append(all, startLiveExample(t, c.name, append(strings.Fields(c.call), addr, string(board))))
		}
	}
	return all
}

// buildExample returns the path of an example in Go.
func buildExample(t *testing.T, folder string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "example")
	if out, err := exec.Command("go", "build", "-o", program, "../../examples/"+folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

func startLiveExample(t *testing.T, name string, call []string) *liveExample {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	cmd := exec.CommandContext(ctx, call[0], call[1:]...)
	e := &liveExample{name: name}
	cmd.Stderr = &e.errors
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			e.mu.Lock()
			e.lines = append(e.lines, lines.Text())
			e.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-read
		_ = cmd.Wait() // killed
		if t.Failed() {
			t.Logf("%s:\n%s\n%s", name, strings.Join(e.lines, "\n"), &e.errors)
		}
	})
	return e
}

// pages returns the pages that it has printed, with scores as Go prints them.
func (e *liveExample) pages() (pages []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, line := range e.lines {
		head, rows, _ := strings.Cut(line, ":")
		if kind, _, _ := strings.Cut(head, " "); kind != "page" && kind != "diff" {
			continue
		}
		for row := range strings.FieldsSeq(rows) {
			member, text, _ := strings.Cut(row, "=")
			score, _ := strconv.ParseFloat(text, 64)
			head += fmt.Sprintf(" %s=%v", member, score)
		}
		pages = append(pages, head)
	}
	return pages
}

// show waits until each has printed the board as Redis has it.
func (all liveExampleSet) show(t *testing.T, h *fixture) {
	t.Helper()
	want := h.rows(t)
	for _, e := range all {
		testkit.Eventually(t, 30*time.Second, func() error {
			if pages := e.pages(); len(pages) == 0 || !strings.HasSuffix(pages[len(pages)-1], want) {
				return fmt.Errorf("%s has not printed%s:\n%s", e.name, want, strings.Join(pages, "\n"))
			}
			return nil
		})
	}
}

// liveScript is what a client meets, one part a connection: the Last-Event-ID that it has to send, and the events that it
// gets. At the first it has an id of the sidecar before.
var liveScript = []struct{ lastID, events string }{
	{"*", page("a.1", 7, 5, `{"rank":1,"member":"m1","score":5}`) +
		diff("a.1", "a.2", 7, 6, 2, `{"at":0,"rank":1,"member":"m2","score":6.5},{"at":1,"rank":2,"member":"m1","score":5}`) +
		diff("a.2", "a.3", 7, 7, 1, ``)}, // and breaks off
	{"a.3", diff("a.2", "a.4", 7, 8, 1, `{"at":0,"rank":1,"member":"wrong","score":1}`)}, // a diff of another page
	{"", page("b.1", 7, 6, `{"rank":1,"member":"older","score":1},{"rank":2,"member":"m1","score":1}`) + // of a sidecar that is behind
		diff("b.1", "b.2", 7, 8, 2, `{"at":0,"rank":1,"member":"m3","score":9}`) +
		"event: end\nretry: 150\ndata: {\"code\":\"draining\"}\n\n"},
	{"b.2", page("c.1", 8, 1, `{"rank":1,"member":"m4","score":1}`) + // of a newer run
		"event: end\nretry: 150\ndata: {\"code\":\"blocked\"}\n\n"},
	{"", page("d.1", 8, 1, `{"rank":1,"member":"m5","score":1}`)},
}

// scriptShows is what a client prints of the script.
var scriptShows = []string{"page 5 m1=5", "diff 6 m2=6.5 m1=5", "diff 7 m2=6.5", "diff 8 m3=9 m1=1", "page 1 m4=1", "page 1 m5=1"}

func page(id string, run, seq int, rows string) string {
	return fmt.Sprintf("event: page\nid: %s\ndata: {\"board\":\"b\",\"source\":\"local\",\"seq\":%d,\"total\":2,\"entries\":[%s],\"run\":%d,\"id\":%q}\n\n", id, seq, rows, run, id)
}

func diff(base, id string, run, seq, length int, rows string) string {
	return fmt.Sprintf("event: diff\nid: %s\ndata: {\"board\":\"b\",\"source\":\"local\",\"seq\":%d,\"total\":2,\"run\":%d,\"id\":%q,\"base\":%q,\"len\":%d,\"rows\":[%s]}\n\n",
		id, seq, run, id, base, length, rows)
}

// playScript plays the script to each program, where the sidecar was.
func playScript(t *testing.T, addr string, all liveExampleSet) {
	t.Helper()
	for _, e := range all {
		e.mu.Lock()
		e.lines = nil
		e.mu.Unlock()
	}
	ln, err := net.Listen("tcp", addr)
	must(t, err)
	players := &scriptPlayers{t: t, at: map[string]int{}}
	server := &http.Server{Handler: players}
	go server.Serve(ln)
	defer server.Close()
	for _, e := range all {
		testkit.Eventually(t, 30*time.Second, func() error {
			if pages := e.pages(); len(pages) < len(scriptShows) {
				return fmt.Errorf("%s has printed %q", e.name, pages)
			}
			return nil
		})
		if pages := e.pages(); !slices.Equal(pages, scriptShows) {
			t.Errorf("%s has printed\n%s, want\n%s", e.name, strings.Join(pages, "\n"), strings.Join(scriptShows, "\n"))
		}
	}
}

// scriptPlayers plays the script to several clients, each for itself. Their User-Agents tell them apart.
type scriptPlayers struct {
	t  *testing.T
	mu sync.Mutex
	at map[string]int
}

func (p *scriptPlayers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	client, lastID := r.UserAgent(), r.Header.Get("Last-Event-ID")
	p.mu.Lock()
	at := p.at[client]
	p.at[client]++
	p.mu.Unlock()
	if at >= len(liveScript) {
		p.t.Errorf("%q connects once more, with the id %q", client, lastID)
		return
	}
	part := liveScript[at]
	if part.lastID != lastID && part.lastID != "*" {
		p.t.Errorf("%q connects with the id %q after part %d, want %q", client, lastID, at, part.lastID)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, part.events)
	if at == len(liveScript)-1 {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}
