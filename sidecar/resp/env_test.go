package resp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	"rankcache/localboard"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/wire"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const roomsFile = `
rooms:
  - {uid: "88", mode: super-hot, boards: ["open", "none", "away"]}
  - {uid: "99", mode: blocked, boards: ["shut"]}
  - {uid: "77", mode: hot, boards: ["hot"]}
`

// env is a Redis, and a listener that answers from copies of some of its boards.
type env struct {
	*Server
	t      testing.TB
	redis  string // address
	addr   string // of the listener
	client *redis.Client
	hot    *fixture.Hot
	open   *localboard.Board // also "none", without members
	boards boards
	split  *fixture.Split // nil: there is none
	tiers  atomic.Pointer[rooms.Tiers]
	stop   context.CancelFunc // drains
	ended  sync.WaitGroup
}

type boards struct{ sync.Map }

func (b *boards) Get(id rankcache.BoardID) (sidecar.Board, bool) {
	v, ok := b.Load(id)
	if !ok {
		return nil, false
	}
	return v.(sidecar.Board), true
}

// envOrigin is Redis as the reader has it: the shards of the split board, and others without members.
type envOrigin struct {
	*fixture.Origin
	e *env
}

func (o envOrigin) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	if s := o.e.split; s != nil && s.Shards[qs[0].Board] != nil {
		s.Read(ctx, qs, as)
		return
	}
	o.Origin.Read(ctx, qs, as)
}

// newEnv starts a listener beside the Redis at an address.
func newEnv(t testing.TB, redisAddr string, change ...func(*Config)) *env {
	t.Helper()
	e := &env{t: t, redis: redisAddr, client: redis.NewClient(&redis.Options{Addr: redisAddr}), hot: &fixture.Hot{At: time.Now()}, open: localboard.New("open")}
	e.tiers.Store(fixture.Tiers(roomsFile)())
	none := localboard.New("none")
	none.Publish()
	e.boards.Store(rankcache.BoardID("none"), none)
	e.boards.Store(rankcache.BoardID("open"), e.open)
	reader, err := sidecar.NewReader(sidecar.Config{Tiers: e.tiers.Load, Boards: &e.boards, Hot: e.hot, Origin: envOrigin{fixture.NewOrigin(0, 1), e}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine takes long, and no test wants a Redis that is late to count as away.
	cfg := Config{Names: wire.DefaultNames(), Dial: dialer(redisAddr), UpstreamTimeout: 10 * time.Second}
	for _, c := range change {
		c(&cfg)
	}
	if e.Server, err = New(reader, cfg, slog.New(slog.DiscardHandler), nil); err != nil {
		t.Fatal(err)
	}
	e.start()
	return e
}

func dialer(addr string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	}
}

func (e *env) start() {
	ln := testkit.Listen(e.t, "tcp")
	e.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	e.ended.Go(func() { _ = e.Run(ctx) })
	e.ended.Go(func() {
		if err := e.Serve(ctx, ln); err != nil {
			e.t.Error(err)
		}
	})
	e.t.Cleanup(func() {
		cancel()
		e.ended.Wait()
		_ = e.client.Close()
	})
}

// learned waits until the upstream was asked.
func (e *env) learned() *env {
	e.t.Helper()
	testkit.Eventually(e.t, 5*time.Second, func() error {
		if !e.Status().Reached {
			return errors.New("nothing was learned from Redis")
		}
		return nil
	})
	return e
}

// fill sets the boards open and hot, here and in Redis.
func (e *env) fill(n int, score func(i int) float64) {
	e.t.Helper()
	var es []rankcache.Entry
	pipe := e.client.Pipeline()
	pipe.Del(e.t.Context(), "open", "none", "hot")
	for i := range n {
		es = append(es, rankcache.Entry{Member: fixture.Member(i), Score: score(i)})
		for _, key := range []string{"open", "hot"} {
			pipe.ZAdd(e.t.Context(), key, redis.Z{Score: score(i), Member: fixture.Member(i)})
		}
	}
	if _, err := pipe.Exec(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
	if err := e.open.Load(1, es); err != nil {
		e.t.Fatal(err)
	}
	e.publish(time.Now())
}

// publish shows what was applied as current at a time.
func (e *env) publish(at time.Time) {
	e.open.Publish()
	e.open.MarkCurrent(at)
	e.hot.Set(e.top(40))
}

// top returns the first rows of the board open as those of the board hot.
func (e *env) top(rows int) *rankcache.Top {
	a := rankcache.One(e.t.Context(), e.open, rankcache.Query{Limit: rows})
	return fixture.Copy(rankcache.TopOf("hot", &a))
}

// clientConn is a connection that sends bytes and reads whole replies.
type clientConn struct {
	net.Conn
	t testing.TB
}

func dial(t testing.TB, addr string) *clientConn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return &clientConn{nc, t}
}

func (e *env) dial() *clientConn { return dial(e.t, e.addr) }

// ask sends one command and returns its reply.
func (c *clientConn) ask(args ...string) string {
	c.t.Helper()
	c.send(string(appendCommand(nil, args...)))
	return c.replies(1)
}

func (c *clientConn) send(p string) {
	c.t.Helper()
	if _, err := c.Write([]byte(p)); err != nil {
		c.t.Fatal(err)
	}
}

// replies returns the next n replies, and what comes with them.
func (c *clientConn) replies(n int) string {
	c.t.Helper()
	got, err := c.read(n)
	if err != nil {
		c.t.Fatalf("%v after %d bytes: %.200q", err, len(got), got)
	}
	return string(got)
}

func (c *clientConn) read(n int) (got []byte, err error) {
	awaited, room := replies{want: n}, make([]byte, 64<<10)
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return nil, err
	}
	for awaited.want > 0 {
		n, err := c.Read(room)
		if err != nil {
			return got, err
		}
		got = append(got, room[:n]...)
		if err := awaited.scan(room[:n]); err != nil {
			return got, err
		}
	}
	return got, nil
}

// rest returns all that comes until the connection ends.
func (c *clientConn) rest() string {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	var all bytes.Buffer
	_, err := all.ReadFrom(c)
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		c.t.Fatal("the connection stays open")
	}
	return all.String()
}

func (c *clientConn) want(reply string, args ...string) {
	c.t.Helper()
	if got := c.ask(args...); got != reply {
		c.t.Errorf("%s: got %.300q, want %.300q", strings.Join(args, " "), got, reply)
	}
}

// closeAll closes the connections that are open now, and waits for it: what is sent to one
// that is about to close is lost.
func (e *env) closeAll() {
	e.t.Helper()
	all := e.conns.All()
	for _, c := range all {
		_ = c.Close()
	}
	testkit.Eventually(e.t, 10*time.Second, func() error {
		for _, c := range e.conns.All() {
			if slices.Contains(all, c) {
				return errors.New("a connection is still open")
			}
		}
		return nil
	})
}

// counted returns how many commands a source has answered.
func (e *env) counted(v verb, s source) int { return int(e.counts.sum(v, s)) }

func (e *env) wantCounted(v verb, s source, n int) {
	e.t.Helper()
	if got := e.counted(v, s); got != n {
		e.t.Errorf("%s answered %d of %s, want %d", s, got, names[v], n)
	}
}

func words(s string, args ...any) []string { return strings.Fields(fmt.Sprintf(s, args...)) }

func (c *clientConn) readFull(p []byte) {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if n, err := io.ReadFull(c, p); err != nil {
		c.t.Fatalf("%v after %q", err, p[:n])
	}
}
