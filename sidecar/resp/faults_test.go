package resp

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/faults"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
)

// TestFaultsUnderPipelines: whatever happens to Redis or the listener, what a connection reads
// are the first replies of what it sent, in order, each once; and local reads and, after the
// fault, passed commands go on.
func TestFaultsUnderPipelines(t *testing.T) {
	t.Parallel()
	type lab struct {
		*env
		redis *servers.Redis
		proxy *faults.Proxy
	}
	const lasts = 150 * time.Millisecond
	for name, f := range map[string]struct {
		fault   func(l lab) error
		restore func(l lab) error
		keeps   bool // no acknowledged write is lost
	}{
		"Redis dies":              {func(l lab) error { return l.redis.Kill() }, func(l lab) error { return l.redis.Restart(t.Context()) }, false},
		"Redis hangs":             {func(l lab) error { return l.redis.Pause() }, func(l lab) error { return l.redis.Resume() }, true},
		"the network is cut":      {func(l lab) error { l.proxy.Cut(); return nil }, func(l lab) error { return l.proxy.Restore() }, true},
		"the network stalls":      {func(l lab) error { l.proxy.Stall(); return nil }, func(l lab) error { return l.proxy.Restore() }, true},
		"connections end":         {func(l lab) error { l.proxy.Redirect(l.redis.Addr()); return nil }, func(lab) error { return nil }, true},
		"another Redis is master": {func(l lab) error { l.proxy.Redirect(testkit.StartRedis(t, servers.RedisOptions{}).Addr()); return nil }, func(lab) error { return nil }, false},
		"the listener drains":     {func(l lab) error { l.stop(); l.ended.Wait(); return nil }, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := testkit.StartRedis(t, servers.RedisOptions{})
			proxy, err := faults.NewProxy(r.Addr())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(proxy.Close)
			l := lab{newEnv(t, r.Addr(), func(c *Config) { c.Dial = dialer(proxy.Addr()) }).learned(), r, proxy}
			l.fill(300, func(i int) float64 { return float64(i) })
			load := newPipelines(l.env, 4)
			load.await(t, 3)
			if err := f.fault(l); err != nil {
				t.Fatal(err)
			}
			if f.restore != nil {
				time.Sleep(lasts)
				if err := f.restore(l); err != nil {
					t.Fatal(err)
				}
				load.await(t, 3)
			}
			load.end(t)
			if f.keeps {
				load.check(t)
			}
		})
	}
}

// TestSentinelFailsOver: connections to a master that has died, or hangs, end, and what comes
// then passes on to the new one.
func TestSentinelFailsOver(t *testing.T) {
	testkit.FullOnly(t, "two failovers")
	for name, fault := range map[string]func(*servers.Redis) error{"dies": (*servers.Redis).Kill, "hangs": (*servers.Redis).Pause} {
		t.Run("the master "+name, func(t *testing.T) {
			s, err := servers.StartSentinel(t.Context(), servers.SentinelOptions{Replicas: 1, Sentinels: 1, DownAfter: 500 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: servers.SentinelMaster, SentinelAddrs: s.Addrs()})
			t.Cleanup(func() { _ = client.Close() })
			o := client.Options()
			e := newEnv(t, s.Nodes[0].Addr(), func(c *Config) {
				c.Dial = func(ctx context.Context) (net.Conn, error) { return o.Dialer(ctx, o.Network, o.Addr) }
				c.OneMaster, c.UpstreamTimeout = true, 500*time.Millisecond
			}).learned()
			e.fill(300, func(i int) float64 { return float64(i) })
			idle := e.dial()
			idle.want("$-1\r\n", "GET", "k")
			load := newPipelines(e, 4)
			load.await(t, 3)
			if err := fault(s.Nodes[0]); err != nil {
				t.Fatal(err)
			}
			load.await(t, 3)
			load.end(t)
			idle.want("+OK\r\n", "SET", "k", "v")
			master := s.Nodes[1].Client()
			defer master.Close()
			if got := master.Get(t.Context(), "k").Val(); got != "v" {
				t.Errorf("the new master has %q", got)
			}
		})
	}
}

// pipelines are connections that send mixed commands and check the replies.
type pipelines struct {
	workers []*pipeliner
	stop    chan struct{}
	all     sync.WaitGroup
}

type pipeliner struct {
	env  *env
	key  string
	stop chan struct{}

	mu          sync.Mutex
	rounds      int // of which all commands were answered by Redis or here
	sent, acked int // INCR
	err         error
}

func newPipelines(e *env, n int) *pipelines {
	p := &pipelines{stop: make(chan struct{})}
	for i := range n {
		w := &pipeliner{env: e, key: fmt.Sprint("count", i), stop: p.stop}
		for place([]byte(w.key)) == place([]byte("open")) { // its own writes would have reads of the board passed
			w.key += "x"
		}
		p.workers = append(p.workers, w)
		p.all.Go(w.run)
	}
	return p
}

// await waits for n more whole rounds of each.
func (p *pipelines) await(t *testing.T, n int) {
	t.Helper()
	for _, w := range p.workers {
		from, _ := w.state()
		testkit.Eventually(t, time.Minute, func() error {
			if now, err := w.state(); now < from+n && err == nil {
				return fmt.Errorf("%s: %d of %d rounds", w.key, now-from, n)
			}
			return nil
		})
	}
}

func (p *pipelines) end(t *testing.T) {
	t.Helper()
	close(p.stop)
	p.all.Wait()
	for _, w := range p.workers {
		if _, err := w.state(); err != nil {
			t.Errorf("%s: %v", w.key, err)
		}
	}
}

// check compares what was acknowledged with what Redis executed.
func (p *pipelines) check(t *testing.T) {
	t.Helper()
	for _, w := range p.workers {
		if n, err := w.env.client.Get(t.Context(), w.key).Int(); err != nil || n < w.acked || n > w.sent {
			t.Errorf("%s: Redis executed %d of %d commands, of which %d were acknowledged (%v)", w.key, n, w.sent, w.acked, err)
		}
	}
}

func (w *pipeliner) state() (rounds int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rounds, w.err
}

// run uses one connection after the other until stop or until a reply is wrong.
func (w *pipeliner) run() {
	for {
		select {
		case <-w.stop:
			return
		default:
		}
		nc, err := net.Dial("tcp", w.env.addr)
		if err != nil { // drained
			return
		}
		err = w.converse(nc)
		nc.Close()
		if err != nil {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
			return
		}
	}
}

// converse returns an error if a reply is not that of its command. That the connection
// ends is none.
func (w *pipeliner) converse(nc net.Conn) error {
	const each = 20
	in, last := bufio.NewReader(nc), 0
	for round := 0; ; round++ {
		select {
		case <-w.stop:
			return nil
		default:
		}
		var out []byte
		for i := range each {
			out = appendCommand(out, "ZSCORE", "open", fixture.Member(i))
			out = appendCommand(out, "EVAL_RO", "return ARGV[1]", "0", fmt.Sprint(round, "-", i))
			out = appendCommand(out, "INCR", w.key)
		}
		w.add(0, each, 0)
		_ = nc.SetDeadline(time.Now().Add(2 * time.Minute)) // longer than await waits
		if _, err := nc.Write(out); err != nil {
			return nil
		}
		whole := 1
		for i := range 3 * each {
			got, ok := readReply(in)
			if !ok {
				return nil
			}
			away := strings.HasPrefix(got, "-MASTERDOWN ")
			if away {
				whole, last = 0, 0
			}
			switch n, _ := strconv.Atoi(strings.TrimPrefix(got, ":")); {
			case i%3 == 0 && got != strconv.Itoa(i/3), i%3 == 1 && got != fmt.Sprint(round, "-", i/3) && !away:
				return fmt.Errorf("reply %d of round %d is %q", i, round, got)
			case i%3 == 2 && !away && (n == 0 || last > 0 && n != last+1 && n != 1): // 1: by another Redis
				return fmt.Errorf("reply %d of round %d is %q after %d", i, round, got, last)
			case i%3 == 2 && !away:
				last = n
				w.add(0, 0, 1)
			}
		}
		w.add(whole, 0, 0)
	}
}

func (w *pipeliner) add(rounds, sent, acked int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rounds, w.sent, w.acked = w.rounds+rounds, w.sent+sent, w.acked+acked
}

// readReply returns a bulk's content, or the line.
func readReply(in *bufio.Reader) (reply string, whole bool) {
	line, err := in.ReadString('\n')
	if err == nil && line[0] == '$' {
		line, err = in.ReadString('\n')
	}
	return strings.TrimSuffix(line, "\r\n"), err == nil
}
