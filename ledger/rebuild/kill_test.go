package rebuild

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

var errDead = errors.New("the rebuild is dead")

// mortal has a rebuild die between two calls of Redis: nothing that it sends then arrives.
type mortal struct{ left atomic.Int64 }

func (m *mortal) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (m *mortal) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if m.left.Add(-1) < 0 {
			cmd.SetErr(errDead)
			return errDead
		}
		return next(ctx, cmd)
	}
}

func (m *mortal) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if m.left.Add(-1) < 0 {
			for _, cmd := range cmds {
				cmd.SetErr(errDead)
			}
			return errDead
		}
		return next(ctx, cmds)
	}
}

// mortal returns a rebuilder that dies after n calls of Redis.
func (f *fixture) mortal(t *testing.T, n int) *Rebuilder {
	client := f.dial(t)
	t.Cleanup(func() { client.Close() })
	m := &mortal{}
	m.left.Store(int64(n))
	client.AddHook(m)
	opts := f.opts
	opts.Redis = client
	return New(opts)
}

// A rebuild that dies at any point, and is run again at once, leaves the board right, whether
// Redis had it or not. What it leaves behind expires.
func killed(t *testing.T, f *fixture, gone bool) {
	f.give(t, "incr-0", "m1", `"op":"incr","delta":5`)
	f.give(t, "incr-1", "m2", `"op":"incr","delta":7`)
	f.give(t, "delete", "m2", `"op":"delete"`)
	f.settle(t)
	for n, ended := 0, false; !ended; n++ {
		ended = f.killedAt(t, n, gone)
		if n > 40 {
			t.Fatal("a rebuild of a small board has more than 40 calls of Redis")
		}
	}
	f.wantProved(t)
}

// killedAt has a rebuild die after n calls, unless it has ended by then, and another one after it.
func (f *fixture) killedAt(t *testing.T, n int, gone bool) (ended bool) {
	t.Helper()
	want, before := f.scores(t), f.state(t)
	if gone {
		f.lose(t)
	} else {
		must(t, f.redis.ZIncrBy(t.Context(), f.opts.Names.BoardKey(f.board), 1000, "m1").Err())
	}
	_, err := f.mortal(t, n).Rebuild(t.Context(), f.board)
	if ended = err == nil; !ended && !errors.Is(err, errDead) {
		t.Fatal(err)
	}
	for _, key := range f.keys(t) {
		if strings.Contains(key, "rebuild") || strings.Contains(key, "adopter") {
			if ttl := f.redis.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > keysLast {
				t.Errorf("killed after %d calls: %s expires in %v", n, key, ttl)
			}
			if strings.Contains(key, "rebuild") {
				must(t, f.redis.Del(t.Context(), key).Err())
			}
		}
	}
	_, err = f.Rebuild(t.Context(), f.board)
	must(t, err)
	f.wantRebuilt(t, want, before)
	return ended
}

// Writers go on after a rebuild that has died: the board is as it was, and nothing was refused.
func writersOutliveIt(t *testing.T, f *fixture) {
	f.fill(t)
	want := f.scores(t)
	dead, err := f.plan(t.Context(), f.board, "")
	must(t, err)
	must(t, dead.keys.begin(t.Context(), f.redis))
	must(t, dead.ahead(t.Context()))
	_, err = dead.hold(t.Context())
	must(t, err)
	answered := make(chan string, 1)
	go func() {
		status, answer := f.post(f.command("late", "m1", `"op":"incr","delta":1`))
		answered <- fmt.Sprint(status, answer)
	}()
	select {
	case answer := <-answered:
		t.Fatalf("a post is answered while the board is rebuilt: %s", answer)
	case <-time.After(200 * time.Millisecond):
	}
	must(t, f.redis.PExpire(t.Context(), f.opts.Names.AdopterKey(f.board), time.Millisecond).Err()) // as 10 s later
	if answer := <-answered; !strings.HasPrefix(answer, "200") {
		t.Error("a post that waited for a rebuild that has died is answered", answer)
	}
	want["m1"]++
	equal(t, "scores", f.scores(t), want)
	_, err = f.Rebuild(t.Context(), f.board)
	must(t, err)
	equal(t, "scores", f.scores(t), want)
	f.wantProved(t)
}
