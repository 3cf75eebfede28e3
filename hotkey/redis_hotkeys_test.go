package hotkey

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"rankcache/internal/testkit"
	"rankcache/wire"
)

// fakeHotKeys speaks HOTKEYS as Redis 8.6 documents it, with a clock of its own.
// No server that has the command was at hand: what is shown here is that this
// source keeps to the documentation.
type fakeHotKeys struct {
	mu      sync.Mutex
	now     int64 // ms
	session *fakeSession
	refuse  string // error of every call
	starts  []string
	stops   int
}

type fakeSession struct {
	begin, end int64 // ms; end 0: active
	keys       map[string]int
}

func (f *fakeHotKeys) advance(d time.Duration, cpu map[string]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now += d.Milliseconds()
	if f.session != nil && f.session.end == 0 {
		for key, us := range cpu {
			f.session.keys[key] += us
		}
	}
}

func (f *fakeHotKeys) command(c *server.Peer, _ string, args []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != "" {
		c.WriteError(f.refuse)
		return
	}
	active := f.session != nil && f.session.end == 0
	switch sub := strings.ToUpper(args[0]); {
	case sub == "GET" && f.session == nil:
		c.WriteNull()
	case sub == "GET":
		f.get(c)
	case sub == "START" && active:
		c.WriteError("ERR hotkey tracking session already in progress")
	case sub == "START":
		f.starts = append(f.starts, strings.Join(args[1:], " "))
		f.session = &fakeSession{begin: f.now, keys: map[string]int{}}
		c.WriteOK()
	case sub == "STOP" && !active:
		c.WriteNull()
	case sub == "STOP":
		f.session.end = f.now
		f.stops++
		c.WriteOK()
	}
}

func (f *fakeHotKeys) get(c *server.Peer) {
	c.WriteLen(1)
	s, active, end := f.session, 1, f.now
	if s.end != 0 {
		active, end = 0, s.end
	}
	c.WriteLen(12)
	for _, field := range []struct {
		name string
		n    int
	}{{"tracking-active", active}, {"sample-ratio", 1}, {"all-commands-all-slots-us", 220},
		{"collection-start-time-unix-ms", int(s.begin)}, {"collection-duration-ms", int(end - s.begin)}} {
		c.WriteBulk(field.name)
		c.WriteInt(field.n)
	}
	c.WriteBulk("by-cpu-time-us")
	c.WriteLen(2 * len(s.keys))
	for key, us := range s.keys {
		c.WriteBulk(key)
		c.WriteInt(us)
	}
}

func newHotKeysServer(t *testing.T) (*fakeHotKeys, *RedisHotKeys) {
	m, f := miniredis.RunT(t), &fakeHotKeys{now: 1_000_000}
	if err := m.Server().Register("HOTKEYS", f.command); err != nil {
		t.Fatal(err)
	}
	return f, newRedisHotKeys(t, m.Addr())
}

func newRedisHotKeys(t *testing.T, addr string) *RedisHotKeys {
	r, err := NewRedisHotKeys(newClient(t, addr), wire.DefaultNames())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newClient(t testing.TB, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true, PoolSize: 2, DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// askHot asks once and returns the boards in order.
func askHot(t *testing.T, s Source) string {
	t.Helper()
	sample, err := s.Hot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(sample.Boards, func(a, b BoardCount) int { return strings.Compare(string(a.Board), string(b.Board)) })
	return fmt.Sprint(sample.Boards, sample.Ignored)
}

func TestRedisHotKeysSessions(t *testing.T) {
	f, r := newHotKeysServer(t)
	load := map[string]int{"1_2_3": 40_000, "cool": 100, "{1_2_3}:meta": 40_000} // µs in 2 s
	if got := askHot(t, r); got != "[] 0" || len(f.starts) != 1 {
		t.Fatalf("first: %s, sessions %v", got, f.starts)
	}
	for range 2 {
		f.advance(2*time.Second, load)
		if got := askHot(t, r); got != "[{1_2_3 20000}] 1" {
			t.Errorf("got %s", got)
		}
	}
	if f.stops != 0 {
		t.Error("the session was ended before its window")
	}
	f.advance(2*time.Second, load)
	askHot(t, r) // ends the window of 5 s and begins the next
	if f.stops != 1 || len(f.starts) != 2 || f.starts[1] != "metrics 1 cpu count 64 duration 30" {
		t.Errorf("%d stops, sessions %q", f.stops, f.starts)
	}
	f.advance(500*time.Millisecond, nil)
	if got := askHot(t, r); got != "[{1_2_3 20000}] 1" {
		t.Errorf("in a young session: %s, want the last window's", got)
	}
	f.advance(2*time.Second, nil)
	if got := askHot(t, r); got != "[] 0" {
		t.Errorf("after a quiet window: %s", got)
	}
}

// A session that an operator has begun is read but never ended.
func TestRedisHotKeysLeavesOthersAlone(t *testing.T) {
	f, r := newHotKeysServer(t)
	f.session = &fakeSession{begin: f.now, keys: map[string]int{}}
	for range 5 {
		f.advance(4*time.Second, map[string]int{"1_2_3": 40_000})
		if got := askHot(t, r); got != "[{1_2_3 10000}] 0" {
			t.Errorf("got %s", got)
		}
	}
	if f.stops != 0 || len(f.starts) != 0 {
		t.Errorf("%d stops and %d starts of another client's session", f.stops, len(f.starts))
	}
	f.mu.Lock()
	f.session.end = f.now // it has run out
	f.mu.Unlock()
	askHot(t, r)
	if len(f.starts) != 1 {
		t.Error("no session was begun after the other had ended")
	}
}

func TestRedisHotKeysErrors(t *testing.T) {
	for refuse, want := range map[string]CallError{
		"ERR unknown command 'HOTKEYS', with args beginning with: 'GET'":      {Code: "unsupported", After: AfterOperator},
		"NOPERM User app has no permissions to run the 'hotkeys|get' command": {Code: "forbidden", After: AfterOperator},
		"ERR hotkey tracking session already in progress":                     {Code: "taken", After: AfterPause},
		"LOADING Redis is loading the dataset in memory":                      {Code: "network", After: AfterPause},
	} {
		f, r := newHotKeysServer(t)
		f.refuse = refuse
		_, err := r.Hot(t.Context())
		checkCall(t, err, want.Code, want.After)
	}
}

// The redis-server itself reports whether it supports HOTKEYS.
func TestRedisHotKeysOnARealServer(t *testing.T) {
	r := newRedisHotKeys(t, testkit.Redis(t))
	sample, err := r.Hot(t.Context())
	var call *CallError
	switch {
	case err == nil:
		t.Logf("this redis-server has HOTKEYS: %+v", sample)
	case errors.As(err, &call) && call.Code == "unsupported":
		t.Logf("this redis-server has no HOTKEYS: %v", err)
	default:
		t.Errorf("error %v", err)
	}
}

func TestRedisHotKeysConfig(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	if _, err := NewRedisHotKeys(cluster, wire.DefaultNames()); err == nil {
		t.Error("a cluster client is accepted")
	}
}

// Other servers have a HOTKEYS that answers otherwise.
func TestRedisHotKeysOfOthers(t *testing.T) {
	for name, answer := range map[string]func(c *server.Peer){
		"rows":      func(c *server.Peer) { c.WriteLen(1); c.WriteStrings([]string{"key", "a", "qps", "5"}) },
		"no start":  func(c *server.Peer) { c.WriteLen(1); c.WriteStrings([]string{"tracking-active", "1"}) },
		"text":      func(c *server.Peer) { c.WriteOK() },
		"odd":       func(c *server.Peer) { c.WriteLen(1); c.WriteStrings([]string{"tracking-active"}) },
		"unwrapped": func(c *server.Peer) { c.WriteStrings([]string{"tracking-active", "1"}) },
	} {
		m := miniredis.RunT(t)
		if err := m.Server().Register("HOTKEYS", func(c *server.Peer, _ string, _ []string) { answer(c) }); err != nil {
			t.Fatal(err)
		}
		_, err := newRedisHotKeys(t, m.Addr()).Hot(t.Context())
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		checkCall(t, err, "network", AfterPause)
	}
}
