package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

const getRoot = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

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
func config(target Target, length int) Config {
	return Config{Target: target, Connections: 4, Window: 50 * time.Millisecond, Pids: []int{os.Getpid()},
		Question: Question{Requests: [][]byte{[]byte(getRoot)}, Status: 200, Length: length}}
}

func run(t *testing.T, cfg Config) *Result {
	t.Helper()
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestClosedLoopCountsWhatTheServerAnswered(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		var served atomic.Int64
		target := serve(t, network, func(w http.ResponseWriter, _ *http.Request) {
			served.Add(1)
			io.WriteString(w, "hello")
		})
		cfg := config(target, 5)
		r := run(t, cfg)
		// Each connection may have one request under way that no longer counts.
		if n := served.Load(); r.Requests == 0 || int64(r.Requests) > n || int64(r.Requests) < n-int64(cfg.Connections) {
			t.Errorf("%s: counted %d, served %d", network, r.Requests, n)
		}
		if r.Errors != 0 || r.CPU <= 0 || r.Rate() <= 0 || r.CPUPerRequest() <= 0 || r.Window < cfg.Window {
			t.Errorf("%s: %+v", network, r)
		}
	}
}

func TestWarmupCountsForNothing(t *testing.T) {
	var served atomic.Int64
	target := serve(t, "tcp", func(w http.ResponseWriter, _ *http.Request) {
		if served.Add(1) <= 4 {
			w.WriteHeader(500)
		}
		io.WriteString(w, "hello")
	})
	cfg := config(target, 5)
	cfg.Warmup = 100 * time.Millisecond
	if r := run(t, cfg); r.Errors != 0 || int64(r.Requests) >= served.Load() {
		t.Errorf("%d good, %d errors of %d served", r.Requests, r.Errors, served.Load())
	}
}

func TestEveryThirdReplyIsWrong(t *testing.T) {
	for name, wrong := range map[string]func(http.ResponseWriter){
		"status": func(w http.ResponseWriter) { w.WriteHeader(503); io.WriteString(w, "hello") },
		"length": func(w http.ResponseWriter) { io.WriteString(w, "hell") },
		"cut":    func(w http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			var served atomic.Int64
			target := serve(t, "tcp", func(w http.ResponseWriter, _ *http.Request) {
				if served.Add(1)%3 == 0 {
					wrong(w)
					return
				}
				io.WriteString(w, "hello")
			})
			r, err := Run(t.Context(), config(target, 5))
			if err != nil { // more errors than are worth a measurement
				if !strings.Contains(err.Error(), "connections were lost") {
					t.Fatal(err)
				}
				return
			}
			n := int(served.Load())
			if r.Errors < n/3-4 || r.Errors > n/3 || r.Requests < n-n/3-4 || r.Requests > n-n/3 || r.Error == nil {
				t.Errorf("%d good, %d errors (%v) of %d served", r.Requests, r.Errors, r.Error, n)
			}
		})
	}
}

func TestServerThatClosesEveryConnectionIsAnError(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	cfg := config(Target{Network: "tcp", Addr: ln.Addr().String()}, 5)
	cfg.Window = time.Minute
	if _, err := Run(t.Context(), cfg); err == nil {
		t.Error("no error")
	}
}

func TestNoListener(t *testing.T) {
	cfg := config(Target{Network: "unix", Addr: filepath.Join(t.TempDir(), "none")}, 5)
	if _, err := Run(t.Context(), cfg); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	target := serve(t, "tcp", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	cfg := config(target, 5)
	cfg.Window = time.Hour
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
	if _, err := Run(ctx, cfg); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestPacedRunKeepsItsRate(t *testing.T) {
	var served atomic.Int64
	target := serve(t, "tcp", func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		io.WriteString(w, "hello")
	})
	cfg := config(target, 5)
	cfg.Rate, cfg.Window = 500, 200*time.Millisecond
	r := run(t, cfg)
	// The timetable of 200 ms has 100 requests, whatever the machine does; a
	// window that was longer has more.
	want := int(cfg.Rate * r.Window.Seconds())
	if n := r.Requests + r.Unanswered; n < want-1 || n > want+2 || len(r.latencies) != n {
		t.Errorf("%d requests with %d latencies in %v, want about %d", n, len(r.latencies), r.Window, want)
	}
	if p50, p999 := r.Percentile(0.5), r.Percentile(0.999); p50 <= 0 || p999 < p50 {
		t.Errorf("p50 %v, p999 %v", p50, p999)
	}
}

// TestConnectionsTakeTurns: at a low rate each connection asks now and again. A server
// closes one that has asked nothing for some seconds.
func TestConnectionsTakeTurns(t *testing.T) {
	var asked sync.Map
	target := serve(t, "tcp", func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.RemoteAddr, true)
		io.WriteString(w, "hello")
	})
	cfg := config(target, 5)
	cfg.Rate, cfg.Window = 200, 100*time.Millisecond
	run(t, cfg)
	n := 0
	for range asked.Range {
		n++
	}
	if n != cfg.Connections {
		t.Errorf("%d of %d connections asked", n, cfg.Connections)
	}
}

// TestStallIsChargedToAllThatWereDue is the difference to a closed loop: one
// answer that takes as long as a hundred requests of the timetable makes most of
// them late, not one.
func TestStallIsChargedToAllThatWereDue(t *testing.T) {
	const stall = 200 * time.Millisecond
	var served atomic.Int64
	target := serve(t, "tcp", func(w http.ResponseWriter, _ *http.Request) {
		if served.Add(1) == 5 {
			time.Sleep(stall) // the server under test is slow; the test waits for nothing
		}
		io.WriteString(w, "hello")
	})
	cfg := config(target, 5)
	cfg.Connections, cfg.Rate, cfg.Window = 1, 500, 300*time.Millisecond
	r := run(t, cfg)
	if p50 := r.Percentile(0.5); p50 < stall/10 {
		t.Errorf("p50 is %v though the server stood still for %v", p50, stall)
	}
	if most := r.Percentile(1); most < stall {
		t.Errorf("the greatest latency is %v, want at least %v", most, stall)
	}
}

func TestUnansweredRequestsCount(t *testing.T) {
	release := make(chan struct{})
	target := serve(t, "tcp", func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	cfg := config(target, 5)
	cfg.Rate = 1000
	r := run(t, cfg)
	if r.Requests != 0 || r.Unanswered < 49 || r.Percentile(1) < 45*time.Millisecond {
		t.Errorf("%d answered, %d not, greatest %v", r.Requests, r.Unanswered, r.Percentile(1))
	}
}

func TestRequestsAreAskedInTurn(t *testing.T) {
	var paths [2]atomic.Int64
	target := serve(t, "tcp", func(w http.ResponseWriter, r *http.Request) {
		paths[r.URL.Path[1]-'0'].Add(1)
		io.WriteString(w, "hello")
	})
	cfg := config(target, 5)
	cfg.Connections = 1
	cfg.Question.Requests = [][]byte{[]byte(strings.Replace(getRoot, "/", "/0", 1)), []byte(strings.Replace(getRoot, "/", "/1", 1))}
	run(t, cfg)
	if a, b := paths[0].Load(), paths[1].Load(); a == 0 || a-b < 0 || a-b > 1 {
		t.Errorf("asked %d and %d times", a, b)
	}
}

func TestPipelinedRedisCommandsAreOneRequest(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var served atomic.Int64
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		for lines := bufio.NewScanner(c); lines.Scan(); served.Add(1) {
			fmt.Fprint(c, ":7\r\n") // the second reply comes in a packet of its own
		}
	}()
	cfg := config(Target{Network: "tcp", Addr: ln.Addr().String(), Proto: RESP}, 0)
	cfg.Connections = 1
	cfg.Question = Question{Requests: [][]byte{[]byte("a\r\nb\r\n")}, Replies: 2}
	if r := run(t, cfg); r.Errors != 0 || r.Requests == 0 || served.Load() < int64(2*r.Requests) {
		t.Errorf("%+v of %d replies", r, served.Load())
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

func TestOnceReturnsTheBytes(t *testing.T) {
	body := strings.Repeat("x", 100<<10)
	target := serve(t, "tcp", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) })
	raw, err := Once(target, []byte(getRoot))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(raw))), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != body {
		t.Errorf("%d bytes, %v", len(got), err)
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
	good := Config{Connections: 1, Window: 1, Question: Question{Requests: [][]byte{{1}}}}
	for name, spoil := range map[string]func(*Config){
		"connections": func(c *Config) { c.Connections = 0 },
		"window":      func(c *Config) { c.Window = 0 },
		"warm-up":     func(c *Config) { c.Warmup = -1 },
		"rate":        func(c *Config) { c.Rate = -1 },
		"requests":    func(c *Config) { c.Question.Requests = nil },
		"request":     func(c *Config) { c.Question.Requests = [][]byte{{}} },
	} {
		bad := good
		if spoil(&bad); bad.check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := good.check(); err != nil {
		t.Error(err)
	}
}
