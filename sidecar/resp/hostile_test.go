package resp

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"rankcache"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
)

// TestGarbageEndsAsAtRedis sends damaged commands to Redis and to the listener, and then ends
// its side of the connection: the replies are the same bytes.
func TestGarbageEndsAsAtRedis(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	r := seedOf(t)
	for range 300 {
		var in []byte
		for range 1 + r.IntN(4) {
			one := []byte(generatorOfFrames(r))
			for range r.IntN(3) {
				damage(r, &one)
			}
			in = append(in, one...)
		}
		var got [2]string
		for i, addr := range []string{e.addr, e.redis} {
			c := dial(t, addr)
			c.send(string(in))
			_ = c.Conn.(*net.TCPConn).CloseWrite()
			got[i] = c.rest()
			_ = c.Close()
		}
		if got[0] != got[1] {
			t.Fatalf("%q is answered\n%q, by Redis\n%q", in, got[0], got[1])
		}
	}
}

func generatorOfFrames(r *rand.Rand) string {
	args := [][]string{{"PING"}, {"ECHO", "a b"}, {"ZCARD", "open"}, {"ZREVRANGE", "open", "0", "1"}, {"GET", "k"}, {"ZSCORE", "open", "m000001"}}[r.IntN(6)]
	if r.IntN(2) == 0 {
		return string(appendCommand(nil, args...))
	}
	return strings.Join(args[:1], " ") + " " + []string{"", `"a\x41"`, `'a b'`, "open", "open 0 1", `"\n"`}[r.IntN(6)] + []string{"\r\n", "\n", " \r\n"}[r.IntN(3)]
}

// damage changes, drops or adds a byte.
func damage(r *rand.Rand, p *[]byte) {
	at := r.IntN(len(*p))
	odd := []byte("\xff\r\n*$:-\"'\\x01 9\x00aZ")
	switch c := odd[r.IntN(len(odd))]; r.IntN(3) {
	case 0:
		(*p)[at] = c
	case 1:
		*p = slices.Delete(*p, at, at+1)
	case 2:
		*p = slices.Insert(*p, at, c)
	}
	if len(*p) == 0 {
		*p = []byte("\n")
	}
}

// TestOwnWritesInPipelines: one connection writes and reads at random, with copies that are
// old, and each read has all that it wrote before.
func TestOwnWritesInPipelines(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	r, c := seedOf(t), e.dial()
	scores := make([]int, 10)
	for i := range scores {
		scores[i] = int(falling(i))
	}
	for range 200 {
		var out []byte
		var want strings.Builder
		n := 1 + r.IntN(12)
		for range n {
			i := r.IntN(10)
			switch r.IntN(12) {
			case 0:
				scores[i] += 100
				out = appendCommand(out, "ZINCRBY", "hot", "100", fixture.Member(i))
				want.Write(appendBulk(nil, strconv.Itoa(scores[i])))
			case 1:
				scores[i] += 100
				out = appendCommand(out, "EVAL", "return redis.call('ZINCRBY', 'ho' .. 't', 100, ARGV[1])", "0", fixture.Member(i))
				want.Write(appendBulk(nil, strconv.Itoa(scores[i])))
			default:
				out = appendCommand(out, "ZREVRANGE", "hot", "0", "0", "WITHSCORES")
				b := best(scores)
				want.Write(appendBulk(appendBulk(appendArray(nil, 2), fixture.Member(b)), strconv.Itoa(scores[b])))
			}
		}
		c.sendCut(r, string(out))
		if got := c.replies(n); got != want.String() {
			t.Fatalf("%q is answered %q, want %q", out, got, want.String())
		}
		if r.IntN(3) > 0 {
			e.refreshHot(scores)
		}
	}
	if e.counted(zRevRange, sourceHot) < 50 || e.counted(zRevRange, sourcePassed) < 50 {
		t.Errorf("%d reads were answered here and %d passed on", e.counted(zRevRange, sourceHot), e.counted(zRevRange, sourcePassed))
	}
}

// best returns the member whose score is highest, of equals the last as Redis orders them.
func best(scores []int) (best int) {
	for i, s := range scores {
		if s >= scores[best] {
			best = i
		}
	}
	return best
}

// refreshHot makes the kept top what Redis has now.
func (e *env) refreshHot(scores []int) {
	at, top := time.Now(), e.top(rankcache.MaxTop)
	i := best(scores)
	top.Entries[0].Member, top.Entries[0].Score = fixture.Member(i), float64(scores[i])
	e.hot.Set(top)
	e.hot.At = at
}

// TestDeepReplies pass on.
func TestDeepReplies(t *testing.T) {
	e := newEnv(t, testkit.Redis(t)).learned()
	c := e.dial()
	const deep = 1000
	c.want(strings.Repeat("*1\r\n", deep)+"*0\r\n", "EVAL", fmt.Sprintf("local t={} for i=1,%d do t={t} end return t", deep), "0")
	c.want("+PONG\r\n", "PING")
}

// TestBoardsNamedOften: Redis is asked once which arguments of a command are keys.
func TestBoardsNamedOften(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	c, args := e.dial(), []string{"SADD", "names"}
	for range 5000 {
		args = append(args, "open")
	}
	c.want(":1\r\n", args...)
	c.want(refusal, "RESTORE", "open", "0", strings.Repeat("x", 1<<20))
	if calls := e.client.Info(t.Context(), "commandstats").Val(); !strings.Contains(calls, "cmdstat_command|getkeysandflags:calls=2,") {
		t.Errorf("Redis was asked more often: %s", calls)
	}
}

// TestLeftBlocked: connections that were pushed out while Redis worked for them leave nothing
// behind, also if they had sent more than is read meanwhile.
func TestLeftBlocked(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr(), func(c *Config) { c.MaxConns = 4 }).learned()
	more := strings.Repeat("PING\r\n", 200<<10/6)
	for range 12 {
		c := e.dial()
		c.send("BLPOP list 0\r\n")
		time.Sleep(20 * time.Millisecond)
		c.send(more)
		_ = c.Close()
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if n := e.Status().Upstreams; n > 4 {
			return fmt.Errorf("%d connections to Redis for at most 4", n)
		}
		return nil
	})
}

// TestLargeCommandsAtOnce: what all connections hold is limited, and given back.
func TestLargeCommandsAtOnce(t *testing.T) {
	s := serveAlone(t, Config{})
	large := string(appendCommand(nil, "PING", strings.Repeat("x", 1<<20)))
	const others = maxHeld - 64<<10
	s.held.used.Add(others)
	c := dial(t, s.Addr().String())
	go func() { _, _ = c.Write([]byte(large)) }()
	_ = c.rest() // the reason, unless it is lost with what was not read
	s.held.used.Add(-others)
	c = dial(t, s.Addr().String())
	for range 3 {
		c.send(large)
		c.replies(1)
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		if n := s.held.used.Load(); n != 0 {
			return fmt.Errorf("%d bytes are still counted", n)
		}
		return nil
	})
}

// TestMemoryOfLargeCommands: what large commands take stays within the limit also before it is collected, the places
// of arguments count, and all is given back. Nothing collects here but the server itself.
func TestMemoryOfLargeCommands(t *testing.T) {
	s := serveAlone(t, Config{})
	large := append(append([]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$62914560\r\n"), make([]byte, 60<<20)...), "\r\n"...)
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	var clients sync.WaitGroup
	for range 6 {
		clients.Go(func() {
			c := dial(t, s.Addr().String())
			go func() { _, _ = c.Write(large) }()
			_, _ = c.Read(make([]byte, 1))
			c.Close()
		})
	}
	clients.Wait()
	if runtime.ReadMemStats(&now); now.HeapInuse > before.HeapInuse+maxHeld+(32<<20) {
		t.Errorf("%d MiB are used for large commands", (now.HeapInuse-before.HeapInuse)>>20)
	}
	c := dial(t, s.Addr().String())
	c.send("*1000001\r\n$4\r\nSADD\r\n" + strings.Repeat("$1\r\nx\r\n", 900_000))
	wantIn := func(what string, ok func() bool) {
		testkit.Eventually(t, 30*time.Second, func() error {
			if !ok() {
				return fmt.Errorf("%s: %d MiB are counted as used, %d as not collected", what, s.held.used.Load()>>20, s.held.garbage.Load()>>20)
			}
			return nil
		})
	}
	wantIn("arguments", func() bool { return s.held.used.Load() > (8+36)<<20 })
	c.Close()
	wantIn("given back", func() bool { return s.held.used.Load() == 0 && s.held.garbage.Load() < minGiven })
	if runtime.ReadMemStats(&now); now.HeapInuse > before.HeapInuse+(32<<20) {
		t.Errorf("%d MiB are kept", (now.HeapInuse-before.HeapInuse)>>20)
	}
}
