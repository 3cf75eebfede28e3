package profile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Virtual time makes these limits exact: a minute of outage takes no minute, and
// a page that is a millisecond late is seen.
const (
	outage       = time.Minute
	pageLimit    = DefaultDeadline + 20*time.Millisecond
	recoverLimit = 5 * time.Second
)

func TestOutages(t *testing.T) {
	for _, fault := range []string{"hang", "dead", "503", "html", "cut", "trickle", "slow"} {
		t.Run(fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { suffer(t, fault) })
		})
	}
}

// suffer reads pages of 50, of which 10 rows are cached, before, during and
// after a fault of the service.
func suffer(t *testing.T, fault string) {
	service := startService(t)
	c := start(t, Options{}, service.source(t))
	known := members("known", 10)
	if missing := c.Get(t.Context(), known, make([][]byte, 10)); missing != 0 {
		t.Fatalf("missing %d of a healthy service", missing)
	}
	service.suffers(fault)
	n := 0
	for began := time.Now(); time.Since(began) < outage; time.Sleep(45 * time.Millisecond) {
		page := append(members(fmt.Sprint("new", n, "-"), 40), known...)
		if n%2 == 1 {
			page = append(members("same", 40), known...) // a hot page, looked at again and again
		}
		if missing := timedPage(t, c, page); missing != 40 {
			t.Fatalf("%s: missing %d after %v, want 40", fault, missing, time.Since(began))
		}
		n++
	}
	service.suffers("")
	healed := time.Now()
	for _, page := range [][]string{members("same", 40), members("new0-", 40), members("later", 40)} {
		for timedPage(t, c, page) > 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	if took := time.Since(healed); took > recoverLimit {
		t.Errorf("recovered %v after the service, want at most %v", took, recoverLimit)
	}
}

// timedPage reads a page and checks it: how long it took, and that missing is
// the number of rows without a profile.
func timedPage(t *testing.T, c *Cache, page []string) int {
	t.Helper()
	dst, none := make([][]byte, len(page)), 0
	began := time.Now()
	missing, _ := c.Join(t.Context(), page, dst)
	if took := time.Since(began); took > pageLimit {
		t.Errorf("a page took %v, want at most %v", took, pageLimit)
	}
	for i, member := range page {
		if dst[i] == nil {
			none++
		} else if want, _ := nick(t.Context(), member); string(dst[i]) != string(want) {
			t.Errorf("%s was given %s", member, dst[i])
		}
	}
	if none != missing {
		t.Errorf("missing %d, but %d rows have no profile", missing, none)
	}
	return missing
}

// service is a profile service on net/http, reached through net.Pipe so that it
// can live in virtual time.
type service struct {
	conns chan net.Conn

	mu     sync.Mutex
	fault  string
	healed chan struct{} // closed when the fault ends
}

func startService(t *testing.T) *service {
	s := &service{conns: make(chan net.Conn), healed: make(chan struct{})}
	server := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(s)
	}()
	t.Cleanup(func() {
		s.suffers("")
		server.Close()
		<-done
	})
	return s
}

func (s *service) source(t *testing.T) *HTTP {
	h, err := NewHTTP(HTTPOptions{URL: "http://profiles.test/v1"})
	if err != nil {
		t.Fatal(err)
	}
	h.client.Transport.(*http.Transport).DialContext = s.dial
	t.Cleanup(h.Close)
	return h
}

func (s *service) suffers(fault string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
	close(s.healed)
	s.healed = make(chan struct{})
}

func (s *service) state() (fault string, healed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault, s.healed
}

func (s *service) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if fault, _ := s.state(); fault == "dead" {
		return nil, errors.New("connection refused")
	}
	client, server := net.Pipe()
	select {
	case s.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept, Close and Addr make the service its own listener.
func (s *service) Accept() (net.Conn, error) {
	if conn, ok := <-s.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (s *service) Close() error {
	close(s.conns)
	return nil
}

func (s *service) Addr() net.Addr { return &net.TCPAddr{} }

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var ask struct{ Members []string }
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch fault, healed := s.state(); fault {
	case "hang":
		<-healed // whether the client is still there or not
	case "dead":
		panic(http.ErrAbortHandler)
	case "503":
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
	case "html":
		io.WriteString(w, "<html><body>It works!</body></html>")
	case "cut":
		io.WriteString(w, `{"profiles":{"`+ask.Members[0]+`":{"nick":"x"`)
	case "trickle":
		trickle(w, r)
	case "slow":
		select {
		case <-time.After(1500 * time.Millisecond): // longer than a call may take
		case <-r.Context().Done():
			return
		}
		fallthrough
	default:
		json.NewEncoder(w).Encode(map[string]any{"profiles": nicks(ask.Members)})
	}
}

// trickle sends a little now and then, as long as the client listens.
func trickle(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, `{"profiles":{`)
	for r.Context().Err() == nil {
		io.WriteString(w, " ")
		w.(http.Flusher).Flush()
		time.Sleep(20 * time.Millisecond)
	}
}

func nicks(members []string) map[string]json.RawMessage {
	profiles := make(map[string]json.RawMessage)
	for _, member := range members {
		profiles[member], _ = nick(context.Background(), member)
	}
	return profiles
}
