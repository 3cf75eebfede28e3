package live

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/internal/testkit/fixture"
	"rankcache/sidecar"
)

var quick = Config{Interval: time.Millisecond, Poll: 5 * time.Millisecond}

// TestClientsEqualThePage drives streams through changes of every kind. Whatever a client
// applies must be the page of the board's state that it tells.
func TestClientsEqualThePage(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			ops := make([]byte, 300)
			for i := range ops {
				ops[i] = byte(random.UintN(256))
			}
			driveStreams(t, ops)
		})
	}
}

func driveStreams(t testing.TB, ops []byte) {
	w := newWorld(t, quick)
	clients := []*client{
		w.newClient(Key{Board: board, Limit: 10}),
		w.newClient(Key{Board: board, Limit: 10, Profiles: true}),
		w.newClient(Key{Board: board, Limit: 10, Profiles: true}),
		w.newClient(Key{Board: board, Limit: 50}),
	}
	for i, op := range ops {
		c, member := clients[int(op>>4)%len(clients)], fixture.Member((i*7+int(op))%30)
		driveOne(w, c, op%16, member, float64(int(op)*i%40))
	}
	w.mode("super-hot")
	w.refill()
	for _, c := range clients {
		c.catchUp()
		c.close()
	}
}

func driveOne(w *world, c *client, op byte, member string, score float64) {
	switch op {
	default:
		w.set(member, score)
		w.publish()
	case 1:
		w.remove(member)
		w.publish()
	case 2:
		w.profiles.Epoch.Add(1)
	case 3:
		w.refill()
	case 4:
		w.failover()
	case 5:
		w.mode("hot")
		w.refreshHot()
	case 6:
		w.hot.Cool(board)
	case 7:
		w.mode("super-hot")
		w.refill()
	case 8:
		w.boards.Close(board)
	case 9:
		if c.stream != nil || c.open(false) == nil {
			c.read(2 * time.Millisecond)
		}
	case 10:
		c.close()
	case 11:
		if c.open(true) == nil {
			c.read(2 * time.Millisecond)
		}
	case 12:
		w.mode("blocked")
	case 13: // the sidecar again
		w.hub.Load().Drain()
		w.start(quick)
	case 14:
		w.moveToOlderPod(quick)
	}
}

// opened returns a client that has the page.
func opened(t testing.TB, w *world, key Key) *client {
	t.Helper()
	c := w.newClient(key)
	if err := c.open(false); err != nil {
		t.Fatal(err)
	}
	c.read(20 * time.Millisecond)
	if c.pages != 1 || c.diffs != 0 {
		t.Fatalf("%d pages and %d diffs at first", c.pages, c.diffs)
	}
	return c
}

var key = Key{Board: board, Limit: 20}

func TestDiffHasWhatDiffers(t *testing.T) {
	w := newWorld(t, quick)
	c := opened(t, w, key)
	w.set(fixture.Member(3), 3.5)
	w.publish()
	c.catchUp()
	if c.pages != 1 || c.diffs != 1 {
		t.Errorf("%d pages and %d diffs for one change", c.pages, c.diffs)
	}
}

// TestLargeDiffIsSentAsPage: over 70 % of the page's bytes.
func TestLargeDiffIsSentAsPage(t *testing.T) {
	w := newWorld(t, quick)
	c := opened(t, w, key)
	for i := range 20 {
		w.set(fixture.Member(i), float64(100-i))
	}
	w.publish()
	c.catchUp()
	if c.pages != 2 || c.diffs != 0 {
		t.Errorf("%d pages and %d diffs", c.pages, c.diffs)
	}
}

func TestResume(t *testing.T) {
	w := newWorld(t, quick)
	c := opened(t, w, key)
	c.close()
	w.set(fixture.Member(3), 3.5)
	w.publish()
	if err := c.open(true); err != nil {
		t.Fatal(err)
	}
	c.catchUp()
	if c.pages != 1 || c.diffs != 1 {
		t.Errorf("%d pages and %d diffs after resuming behind one change", c.pages, c.diffs)
	}
	if err := c.open(true); err != nil {
		t.Fatal(err)
	}
	if c.read(50 * time.Millisecond) {
		t.Errorf("resuming with nothing new got %+v", c.last)
	}
	for _, id := range []string{"0123456789abcdef.1", "x", ".", c.id + "9", c.id + "x"} {
		c.id = id
		if err := c.open(true); err != nil {
			t.Fatal(err)
		}
		pages := c.pages
		c.read(20 * time.Millisecond)
		if c.pages != pages+1 {
			t.Errorf("resuming with %q got no page", id)
		}
	}
}

// TestSlowClientSkips: a client that takes nothing has one slot, and then gets the newest.
func TestSlowClientSkips(t *testing.T) {
	w := newWorld(t, quick)
	c := opened(t, w, key)
	fast := opened(t, w, key)
	for i := range 10 {
		w.set(fixture.Member(3), 3.5+float64(i)/100)
		w.publish()
		fast.catchUp()
	}
	c.catchUp()
	if c.diffs != 1 || c.pages != 1 || fast.diffs < 9 {
		t.Errorf("the slow client got %d diffs, the fast one %d", c.diffs, fast.diffs)
	}
	for i := range history + 1 {
		w.set(fixture.Member(3), 4+float64(i)/100)
		w.publish()
		fast.catchUp()
	}
	c.catchUp()
	if c.diffs != 1 || c.pages != 2 {
		t.Errorf("%d diffs and %d pages beyond %d versions", c.diffs, c.pages, history)
	}
}

// TestPageAfter: what replaces the client's state.
func TestPageAfter(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"tier":     func(w *world) { w.mode("hot"); w.refreshHot() },
		"closed":   func(w *world) { w.set(fixture.Member(1), 1.5); w.boards.Close(board) },
		"failover": (*world).failover,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, quick)
			c := opened(t, w, key)
			change(w)
			for c.read(100*time.Millisecond) && c.pages < 2 { //nolint:revive // reads on
			}
			if c.pages < 2 || c.diffs != 0 {
				t.Errorf("%d pages, %d diffs", c.pages, c.diffs)
			}
		})
	}
}

// TestMoveToOlderPod: the other pod does not know the id. Its page may be older, of the same run;
// then what it catches up comes as diffs.
func TestMoveToOlderPod(t *testing.T) {
	w := newWorld(t, quick)
	for i := range 3 {
		w.set(fixture.Member(3), 3.5+float64(i)/100)
	}
	w.publish()
	c := opened(t, w, key)
	before := c.state()
	w.moveToOlderPod(quick)
	if err := c.open(true); err != nil {
		t.Fatal(err)
	}
	c.read(20 * time.Millisecond)
	if c.pages != 2 || c.diffs != 0 || c.state().Run != before.Run || c.state().Seq != before.Seq-3 {
		t.Fatalf("%d pages, %d diffs, at %v after %v", c.pages, c.diffs, c.state(), before)
	}
	w.publish()
	c.catchUp()
	if c.pages != 2 || c.diffs != 1 || c.state() != before {
		t.Errorf("%d pages, %d diffs, at %v, want %v", c.pages, c.diffs, c.state(), before)
	}
}

// TestMetrics counts what a stream gets.
func TestMetrics(t *testing.T) {
	w := newWorld(t, quick)
	reg := prometheus.NewPedanticRegistry()
	h, err := New(w.reader, quick, reg)
	if err != nil {
		t.Fatal(err)
	}
	w.hub.Store(h)
	t.Cleanup(func() { w.end(h) })
	slow, fast := opened(t, w, key), opened(t, w, key)
	for i := range 3 {
		w.set(fixture.Member(3), 3.5+float64(i)/100)
		w.publish()
		fast.catchUp()
	}
	slow.catchUp() // with the last of three
	for _, id := range []string{fast.id, "x"} {
		c := w.newClient(key)
		if c.id = id; c.open(true) != nil {
			t.Fatal("not resumed behind", id)
		}
	}
	const want = `
# HELP rankcache_live_streams Live streams that are open now.
# TYPE rankcache_live_streams gauge
rankcache_live_streams 4
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "rankcache_live_streams"); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		counter prometheus.Counter
		want    float64
	}{
		"versions": {h.metrics.versions, 4}, "diffs": {h.metrics.diffs, 4}, "diffs sent": {h.metrics.diffsSent, 4}, "pages sent": {h.metrics.pagesSent, 2},
		"skipped": {h.metrics.skipped, 2}, "resumed with a diff": {h.metrics.resumedBy[1], 1}, "resumed with a page": {h.metrics.resumedBy[0], 1},
	} {
		if got := testutil.ToFloat64(c.counter); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestInterval: after polls at which nothing was new a change waits for nothing, further ones for the
// interval, and then the newest is sent.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{Interval: time.Minute, Heartbeat: 24 * time.Hour})
		c := opened(t, w, key)
		time.Sleep(10 * time.Minute)
		for n, want := range []time.Duration{0, time.Minute, time.Minute} {
			began := time.Now()
			for i := range 20 {
				w.set(fixture.Member(3), 3.5+float64(20*n+i)/1000)
				w.publish()
				if n == 0 {
					break
				}
			}
			ev, err := c.stream.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began); waited != want {
				t.Errorf("change %d was sent after %v, want %v", n, waited, want)
			}
			c.take(ev)
			if err := c.current(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestStreamEnds(t *testing.T) {
	for name, end := range map[Code]func(w *world){
		CodeBlocked: func(w *world) { w.mode("blocked") },
		CodeDeleted: func(w *world) {
			w.mode("hot")
			for i := range 20 {
				w.remove(fixture.Member(i))
			}
		},
		CodeDraining: func(w *world) { w.hub.Load().Drain() },
	} {
		t.Run(string(name), func(t *testing.T) {
			w := newWorld(t, quick)
			c := opened(t, w, key)
			end(w)
			for c.stream != nil && c.read(100*time.Millisecond) { //nolint:revive // reads on
			}
			if c.last.Kind != End || c.last.Code != name || c.last.Retry < 100*time.Millisecond || c.last.Retry > time.Second {
				t.Errorf("the last event is %+v", c.last)
			}
		})
	}
}

func TestOpenRefused(t *testing.T) {
	w := newWorld(t, Config{Streams: 2})
	a, b := opened(t, w, key), opened(t, w, key)
	c := w.newClient(key)
	if err := c.open(false); !errors.Is(err, ErrStreams) {
		t.Errorf("the third of 2 streams: %v", err)
	}
	a.close()
	b.close()
	w.mode("blocked")
	if err := c.open(false); !errors.Is(err, sidecar.ErrBlocked) {
		t.Errorf("a blocked board: %v", err)
	}
	w.hub.Load().Drain()
	if err := c.open(false); !errors.Is(err, ErrDraining) {
		t.Errorf("draining: %v", err)
	}
}

// TestOpenWhileRedisIsAway: each stream that is opened is answered by one call of Redis.
func TestOpenWhileRedisIsAway(t *testing.T) {
	w := newWorld(t, Config{})
	w.away.Store(true)
	for n := range int64(3) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := w.hub.Load().Subscribe(ctx, Key{Board: "small", Limit: 5}, Options{})
		cancel()
		if !errors.Is(err, rankcache.ErrUnavailable) || w.asked.Load() != n+1 {
			t.Errorf("%v after %d calls of Redis, want %d", err, w.asked.Load(), n+1)
		}
	}
	w.away.Store(false)
	s, err := w.hub.Load().Subscribe(t.Context(), Key{Board: "small", Limit: 5}, Options{})
	if err != nil {
		t.Fatal("Redis is back:", err)
	}
	s.Close()
}

func TestSmallBoardsAreLimited(t *testing.T) {
	w := newWorld(t, Config{})
	for i := range MaxSmall {
		s, err := w.hub.Load().Subscribe(t.Context(), Key{Board: rankcache.BoardID(fmt.Sprint("small", i)), Limit: 5}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
	}
	if _, err := w.hub.Load().Subscribe(t.Context(), Key{Board: "one-more", Limit: 5}, Options{}); !errors.Is(err, ErrStreams) {
		t.Errorf("small board %d: %v", MaxSmall, err)
	}
	opened(t, w, key) // which is kept here
}

// TestWatchedBoardCountsAsRead: a hot page that is watched must not become idle.
func TestWatchedBoardCountsAsRead(t *testing.T) {
	w := newWorld(t, quick)
	c := opened(t, w, key)
	before := w.hot.Reads.Load()
	c.read(50 * time.Millisecond)
	if w.hot.Reads.Load() == before {
		t.Error("a watched board counts no reads")
	}
}

// TestEncodingsAreShared: each update is encoded once for all event streams of a key, and an
// unwatched key has no encoder for long.
func TestEncodingsAreShared(t *testing.T) {
	w := newWorld(t, quick)
	a, b := opened(t, w, key), opened(t, w, key)
	w.set(fixture.Member(3), 3.5)
	w.publish()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var bytes [2][]byte
	for i, c := range []*client{a, b} {
		ev, err := c.stream.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		bytes[i] = ev.SSE()
		c.take(ev)
	}
	if &bytes[0][0] != &bytes[1][0] {
		t.Error("two streams of a key had their diffs encoded apart")
	}
}

// TestBeatsAreSpread: streams that are opened together don't beat together.
func TestBeatsAreSpread(t *testing.T) { synctest.Test(t, beatsAreSpread) }

func beatsAreSpread(t *testing.T) {
	cfg := quick
	cfg.Heartbeat = time.Second
	w := newWorld(t, cfg)
	const streams = 20
	beats := make(chan time.Duration, streams)
	for range streams {
		began := time.Now()
		c := opened(t, w, key)
		go func() {
			for {
				if ev, err := c.stream.Next(t.Context()); err != nil || ev.Kind == Age {
					beats <- time.Since(began)
					return
				}
			}
		}()
	}
	first, last := time.Hour, time.Duration(0)
	for range streams {
		beat := <-beats
		first, last = min(first, beat), max(last, beat)
	}
	if last-first < cfg.Heartbeat/10 {
		t.Errorf("all beat %v to %v after they were opened", first, last)
	}
}
