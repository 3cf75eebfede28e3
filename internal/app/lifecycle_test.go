package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

// TestProbesInEveryState: each probe's answer while the sidecar starts, is ready
// and stops.
func TestProbesInEveryState(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.give(t, h.star, 2)
	s := h.serve(t, "--give-up-after", "5s", "--drain", "10s", "--kafka", "127.0.0.1:1") // no broker there
	want := func(state string, startup, ready int) {
		t.Helper()
		testkit.Eventually(t, 30*time.Second, func() error {
			if code, body := s.Get("health", "/readyz"); code != ready || !strings.Contains(body, `"state":"`+state+`"`) {
				return fmt.Errorf("%s: readiness answers %d %s, want %d", state, code, body, ready)
			}
			return nil
		})
		for path, code := range map[string]int{"/startupz": startup, "/livez": http.StatusOK} {
			for _, listener := range []string{"health", "admin"} {
				if got, body := s.Get(listener, path); got != code {
					t.Errorf("%s: %s%s answers %d %s, want %d", state, listener, path, got, body, code)
				}
			}
		}
	}
	want("starting", http.StatusServiceUnavailable, http.StatusServiceUnavailable)
	testkit.Eventually(t, 4*time.Second, func() error { // once the boards are read from Redis
		_, body := s.Get("health", "/startupz")
		return contains(body, string(h.star))
	})
	if code, source := s.answers(h.star); code != http.StatusOK || source != "redis" {
		t.Errorf("a board that is not open is answered %d from %q, want Redis", code, source)
	}
	want("ready", http.StatusOK, http.StatusOK) // the board is given up to Redis
	s.Signal(syscall.SIGTERM)
	want("stopping", http.StatusOK, http.StatusServiceUnavailable)
	if code, _ := s.answers(h.star); code != http.StatusOK {
		t.Errorf("the app is answered %d during the drain", code)
	}
	s.stopAgain()
	if code := s.Wait(5 * time.Second); code != cli.ExitSignaled { // long before the drain is over
		t.Errorf("a second signal ends with %d, want %d", code, cli.ExitSignaled)
	}
}

// stopAgain sends signals until one is not taken for the same request as the
// first, as within a second it is.
func (c *child) stopAgain() {
	c.t.Helper()
	testkit.Eventually(c.t, 10*time.Second, func() error {
		c.Signal(syscall.SIGTERM)
		return contains(c.Log(), "again: ended at once")
	})
}

// TestSignalsTogetherAreOne: as GNU timeout sends them. SIGHUP ends nothing.
func TestSignalsTogetherAreOne(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{{"serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0"},
		{"write", "--scores", "127.0.0.1:0"}, {"poll", "--hot-source", "redis"}, {"controller"}, {"keep"}} {
		t.Run(command[0], func(t *testing.T) {
			t.Parallel()
			args := append(command, "--health", "127.0.0.1:0", "--redis", "redis://127.0.0.1:1", "--kafka", "127.0.0.1:1")
			if command[0] != "poll" && command[0] != "controller" && command[0] != "keep" {
				args = append(args, "--drain", "0s")
			}
			c := startListening(t, args...)
			c.Signal(syscall.SIGHUP)
			testkit.Eventually(t, 5*time.Second, func() error { return contains(c.Log(), "SIGHUP") })
			c.Signal(syscall.SIGTERM)
			c.Signal(syscall.SIGTERM)
			c.Signal(syscall.SIGINT)
			if code := c.Wait(20 * time.Second); code != cli.ExitOK {
				t.Errorf("ended with %d, want %d", code, cli.ExitOK)
			}
		})
	}
}

// TestStopUnderLoad: from SIGTERM to the end of the drain no request fails, one
// that was begun before the end is finished after it, and the exit code is 0.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.give(t, h.star, 5)
	h.give(t, h.small, 3)
	s := h.serve(t, "--drain", "4s") // in which a busy machine answers 50 reads
	s.WaitReady(time.Minute)
	load := startReads(t, s, h.star, h.small)
	load.atLeast(t, 200)
	s.Signal(syscall.SIGTERM)
	s.waitNotReady()
	load.atLeast(t, 50) // more, as callers that have not heard yet
	slow := s.begin("data", "/v1/boards/"+string(h.star)+"/members:batch", `{"members":["m0","m1"]}`)
	load.stop(t) // now they have: a Service sends no more callers
	s.waitClosed("data")
	slow.finish(t, `"m1"`)
	if code := s.Wait(20 * time.Second); code != cli.ExitOK {
		t.Errorf("exit code %d, want %d", code, cli.ExitOK)
	}
}

// waitNotReady waits until the readiness probe fails, not until it is gone.
func (c *child) waitNotReady() {
	c.t.Helper()
	testkit.Eventually(c.t, 2*time.Second, func() error {
		if code, body := c.Get("health", "/readyz"); code != http.StatusServiceUnavailable {
			return fmt.Errorf("still ready: %d %s", code, body)
		}
		return nil
	})
}

// waitClosed waits until a listener refuses connections.
func (c *child) waitClosed(listener string) {
	c.t.Helper()
	testkit.Eventually(c.t, 30*time.Second, func() error {
		conn, err := net.Dial("tcp", c.Addr(listener))
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		} else if err == nil {
			conn.Close()
		}
		return fmt.Errorf("the %s port still listens: %v", listener, err)
	})
}

// atLeast waits until so many more requests were answered.
func (r *steadyLoad) atLeast(t *testing.T, n int) {
	t.Helper()
	before := r.count()
	testkit.Eventually(t, 30*time.Second, func() error {
		if more := r.count() - before; more < n {
			return fmt.Errorf("%d requests of %d", more, n)
		}
		return nil
	})
}

func (r *steadyLoad) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done
}

// begun is a request of which the server has not all yet.
type begun struct {
	conn net.Conn
	body string
}

// begin posts the beginning of a body to a listener.
func (c *child) begin(listener, path, body string) *begun {
	c.t.Helper()
	conn, err := net.Dial("tcp", c.Addr(listener))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body[:5])
	return &begun{conn, body[5:]}
}

// finish posts the rest and wants an answer with a text in it.
func (b *begun) finish(t *testing.T, want string) {
	t.Helper()
	b.conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(b.conn, b.body); err != nil {
		t.Fatalf("a request that was begun can't be finished: %v", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(b.conn), nil)
	if err != nil {
		t.Fatalf("a request that was begun is not answered: %v", err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
		t.Errorf("a request that was begun is answered %d %s, %v", resp.StatusCode, text, err)
	}
}

// TestGroupsAtTheBroker: a sidecar has no consumer group, running or stopped, and
// a writer that is stopped has left its own.
func TestGroupsAtTheBroker(t *testing.T) {
	t.Parallel()
	h := newFixture(t, "--drain", "0s")
	h.give(t, h.star, 2)
	s := h.serve(t, "--drain", "0s")
	s.WaitReady(time.Minute)
	group := h.commands()
	testkit.Eventually(t, 30*time.Second, func() error {
		if state := groupState(t, group); state != "Stable" {
			return fmt.Errorf("the writer's group is %s while it runs", state)
		}
		return nil
	})
	if state := groupState(t, "rankcache-replay"); state != "Dead" {
		t.Errorf("the sidecar's group is %s, want none", state)
	}
	s.Signal(syscall.SIGTERM)
	h.writer.Signal(syscall.SIGTERM)
	var all sync.WaitGroup
	for name, c := range map[string]*child{"sidecar": s, "writer": h.writer} {
		all.Go(func() {
			if code := c.Wait(20 * time.Second); code != cli.ExitOK {
				t.Errorf("the %s ends with %d", name, code)
			}
		})
	}
	all.Wait()
	if state := groupState(t, group); state != "Empty" {
		t.Errorf("the writer has ended and its group is %s: it did not leave", state)
	}
	if state := groupState(t, "rankcache-replay"); state != "Dead" {
		t.Errorf("the sidecar's group is %s, want none", state)
	}
}

// groupState returns the broker's state of a consumer group: Stable with
// members, Empty without, Dead if there is none.
func groupState(t *testing.T, group string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{group}
	resp, err := req.RequestWith(ctx, testkit.KafkaClient(t, testkit.Kafka(t)))
	if err != nil {
		t.Fatal(err)
	}
	return resp.Groups[0].State
}
