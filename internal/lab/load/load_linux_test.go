package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// serve starts an HTTP server and returns how to reach it.
func serve(t *testing.T, network string, h http.HandlerFunc) Target {
	t.Helper()
	ln := testkit.Listen(t, network)
	srv := httptest.NewUnstartedServer(h)
	srv.Listener.Close()
	srv.Listener = ln
	srv.Start()
	t.Cleanup(srv.Close)
	return Target{Network: network, Addr: ln.Addr().String()}
}

// config is a short run of GET /.
func config(t *testing.T, target Target) Config {
	t.Helper()
	testkit.Need(t, Installed("h2load"))
	return Config{Target: target, Connections: 4, Window: 50 * time.Millisecond, Pids: []int{os.Getpid()},
		Question: Question{Paths: []string{"/"}, Status: 200, Length: 5}}
}

func run(t *testing.T, cfg Config) *Result {
	t.Helper()
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func hello(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }

func TestResultCountsWhatTheServerAnswered(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		var served atomic.Int64
		target := serve(t, network, func(w http.ResponseWriter, r *http.Request) {
			served.Add(1)
			hello(w, r)
		})
		cfg := config(t, target)
		r := run(t, cfg)
		// Each connection may have one request under way that no longer counts.
		if n := served.Load(); r.Requests == 0 || int64(r.Requests) > n || int64(r.Requests) < n-int64(cfg.Connections) {
			t.Errorf("%s: counted %d, served %d", network, r.Requests, n)
		}
		if r.Errors != 0 || r.Error != nil || r.CPU <= 0 || r.Rate() <= 0 || r.CPUPerRequest() <= 0 || r.Window < cfg.Window {
			t.Errorf("%s: %+v", network, r)
		}
	}
}

func TestQuestionsAreSentWhole(t *testing.T) {
	var paths [2]atomic.Int64
	var wrong atomic.Int64
	target := serve(t, "tcp", func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); r.Method != http.MethodPost || string(body) != "x=1" || r.Header.Get("Traceparent") != "00-1" {
			wrong.Add(1)
		}
		paths[r.URL.Path[1]-'0'].Add(1)
		hello(w, r)
	})
	cfg := config(t, target)
	cfg.Connections, cfg.Window, cfg.Calls = 1, 0, 10
	cfg.Question.Paths, cfg.Question.Fields, cfg.Question.Body = []string{"/0", "/1"}, []string{"Traceparent: 00-1"}, []byte("x=1")
	resp, body, err := Ask(target, &cfg.Question)
	if err != nil || resp.StatusCode != 200 || string(body) != "hello" {
		t.Errorf("%v, %s, %v", resp, body, err)
	}
	r := run(t, cfg)
	if a, b := paths[0].Load()-1, paths[1].Load(); r.Requests != 10 || a != 5 || b != 5 || wrong.Load() > 0 {
		t.Errorf("%d answers, asked %d and %d times, %d of them wrong", r.Requests, a, b, wrong.Load())
	}
}

func TestWrongRepliesAreErrors(t *testing.T) {
	for name, wrong := range map[string]func(http.ResponseWriter){
		"status": func(w http.ResponseWriter) { w.WriteHeader(503); io.WriteString(w, "hello") },
		"length": func(w http.ResponseWriter) { io.WriteString(w, "hell") },
		"cut":    func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			var served atomic.Int64
			target := serve(t, "tcp", func(w http.ResponseWriter, r *http.Request) {
				if served.Add(1)%3 == 0 {
					wrong(w)
					return
				}
				hello(w, r)
			})
			cfg := config(t, target)
			cfg.Window, cfg.Calls = 0, 300
			if r := run(t, cfg); r.Errors == 0 || r.Error == nil || r.Requests > 200 {
				t.Errorf("%+v of %d served", r, served.Load())
			}
		})
	}
	none := config(t, Target{Network: "unix", Addr: filepath.Join(t.TempDir(), "none")})
	if r, err := Run(t.Context(), none); err == nil || !strings.Contains(err.Error(), "could not connect") {
		t.Errorf("without a server: %+v, %v", r, err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cfg := config(t, serve(t, "tcp", func(w http.ResponseWriter, r *http.Request) {
		cancel(cause)
		hello(w, r)
	}))
	cfg.Window = time.Hour
	if _, err := Run(ctx, cfg); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

// TestStallIsChargedToAllThatWereDue is the difference to what h2load reports: one answer that takes as long as
// twenty requests of the timetable makes most of them late, not one.
func TestStallIsChargedToAllThatWereDue(t *testing.T) {
	const stall = 200 * time.Millisecond
	var served atomic.Int64
	target := serve(t, "tcp", func(w http.ResponseWriter, r *http.Request) {
		if served.Add(1) == 5 {
			time.Sleep(stall) // the server under test is slow; the test waits for nothing
		}
		hello(w, r)
	})
	cfg := config(t, target)
	cfg.Connections, cfg.Rate, cfg.Window = 1, 100, 300*time.Millisecond
	r := run(t, cfg)
	if p50, most := r.Percentile(0.5), r.Percentile(1); p50 < stall/10 || most < stall {
		t.Errorf("p50 is %v and the greatest latency %v though the server stood still for %v", p50, most, stall)
	}
}

// Two connections ask every 10 ms, and get no answer for 30 ms. The run ends before the last are sent.
func TestLateRequestsCountFromWhenTheyWereDue(t *testing.T) {
	ms := func(at, took int) sent {
		return sent{time.Duration(at) * time.Millisecond, time.Duration(took) * time.Millisecond}
	}
	var r Result
	r.charge([]sent{ms(0, 9), ms(1, 9), // as they connect
		ms(10, 32), ms(11, 31), ms(42, 1), ms(42, 1), ms(43, 1), ms(43, 1), ms(44, 1), ms(44, 1)},
		&Config{Connections: 2, Rate: 200, Window: 70 * time.Millisecond})
	if got := fmt.Sprint(r.latencies); r.Unanswered != 3 || got != "[1ms 1ms 10ms 13ms 14ms 19ms 20ms 22ms 23ms 31ms 32ms]" {
		t.Errorf("%d unanswered, latencies %v", r.Unanswered, got)
	}
	var none Result
	if none.charge(nil, &Config{Connections: 2, Rate: 200, Window: 70 * time.Millisecond}); none.Unanswered != 12 || none.Percentile(1) != 60*time.Millisecond {
		t.Errorf("of a server that answers nothing: %d unanswered, latencies %v", none.Unanswered, none.latencies)
	}
}

func TestPercentileIsTheNearestRank(t *testing.T) {
	var r Result
	for i := range 1000 {
		r.latencies = append(r.latencies, time.Duration(i+1))
	}
	for p, want := range map[float64]time.Duration{0: 1, 0.5: 500, 0.99: 990, 0.999: 999, 1: 1000} {
		if got := r.Percentile(p); got != want {
			t.Errorf("%v of 1..1000: got %d, want %d", p, got, want)
		}
	}
	if got := new(Result).Percentile(0.5); got != 0 {
		t.Errorf("of nothing: got %v", got)
	}
}

func TestPinTiesEveryThread(t *testing.T) {
	cores, err := Cores()
	if err != nil || len(cores) == 0 {
		t.Fatal(cores, err)
	}
	cat := exec.Command("cat")
	in, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	last := cores[len(cores)-1]
	if err := Pin(cat.Process.Pid, last); err != nil {
		t.Error(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cat.Process.Pid))
	if want := fmt.Sprintf("Cpus_allowed_list:\t%d\n", last); err != nil || !strings.Contains(string(status), want) {
		t.Errorf("want %q in %s (%v)", want, status, err)
	}
	in.Close()
	if err := cat.Wait(); err != nil {
		t.Error(err)
	}
	if err := Pin(cat.Process.Pid, last); err == nil {
		t.Error("no error for a process that is not there")
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Connections: 1, Window: 1, Question: Question{Paths: []string{"/"}, Status: 200}}
	for name, spoil := range map[string]func(*Config){
		"connections": func(c *Config) { c.Connections = 0 },
		"window":      func(c *Config) { c.Window = 0 },
		"rate":        func(c *Config) { c.Rate = -1 },
		"fast":        func(c *Config) { c.Rate = 101 },
		"redis":       func(c *Config) { c.Question.Command, c.Calls, c.Rate = []string{"PING"}, 1, 1 },
	} {
		bad := good
		spoil(&bad)
		if _, err := Run(t.Context(), bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	t.Setenv("PATH", t.TempDir())
	for question, part := range map[*Question]string{{Paths: []string{"/"}, Status: 200}: "nghttp2-client", {Command: []string{"PING"}}: "redis-tools"} {
		if _, err := Run(t.Context(), Config{Connections: 1, Window: 1, Question: *question}); !errors.Is(err, servers.ErrNotInstalled) || !strings.Contains(err.Error(), part) {
			t.Errorf("without the program: %v", err)
		}
	}
}

func TestRedis(t *testing.T) {
	target := Target{Network: "tcp", Addr: testkit.Redis(t)}
	testkit.Need(t, Installed("redis-benchmark"))
	if got, err := AskRedis(target, "ECHO", "hello"); err != nil || string(got) != "$5\r\nhello\r\n" {
		t.Errorf("%q, %v", got, err)
	}
	cfg := Config{Target: target, Connections: 2, Window: 20 * time.Millisecond, Question: Question{Command: []string{"ECHO", "hello"}, Pipeline: 4}, Pids: []int{os.Getpid()}}
	if r := run(t, cfg); r.Requests < tryFirst || r.Errors > 0 || r.Window <= 0 {
		t.Errorf("%+v", r)
	}
	cfg.Question.Command = []string{"NOTHING"}
	if r, err := Run(t.Context(), cfg); err == nil {
		t.Errorf("an unknown command: %+v", r)
	}
	if got, err := AskRedis(target, "NOTHING"); err == nil {
		t.Errorf("an unknown command: %q", got)
	}
}
