package origin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// tripCount counts transactions, and holds them back.
type tripCount struct {
	trips, gets atomic.Int64
	hold        chan struct{}
}

func (c *tripCount) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (c *tripCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (c *tripCount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Name() == "zrevrank" }) {
			return next(ctx, cmds) // of a new connection
		}
		c.trips.Add(1)
		for _, cmd := range cmds {
			if strings.EqualFold(cmd.Name(), "get") {
				c.gets.Add(1)
			}
		}
		if c.hold != nil {
			<-c.hold
		}
		return next(ctx, cmds)
	}
}

// Standings that are asked for while trips are under way share the next one; each gets its own answer or error.
func TestStandingsShareTrips(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2})
	defer client.Close()
	board, text := testkit.Name(t), testkit.Name(t)+"-text"
	for i := range 30 {
		client.ZAdd(t.Context(), board, redis.Z{Score: float64(i), Member: fmt.Sprint(i)})
	}
	client.Set(t.Context(), text, "x", 0)
	t.Cleanup(func() { client.Del(context.Background(), board, text) })
	count := &tripCount{hold: make(chan struct{})}
	client.AddHook(count)
	o := New(client, wire.DefaultNames(), WithTimeout(20*time.Second))
	var reads sync.WaitGroup
	read := func(board string, member int) {
		reads.Go(func() {
			a := rankcache.One(t.Context(), o, rankcache.Query{Board: rankcache.BoardID(board), Members: []string{fmt.Sprint(member)}})
			if board == text {
				if !errors.Is(a.Err, rankcache.ErrUnreadable) {
					t.Errorf("a text: %v", a.Err)
				}
			} else if a.Err != nil || a.Own[0].Rank != 30-member || a.Own[0].Score != float64(member) || a.Members != 30 {
				t.Errorf("member %d: %+v, %v", member, a.Own, a.Err)
			}
		})
	}
	for i := range maxTrips {
		read(board, i)
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		if n := count.trips.Load(); n != maxTrips {
			return fmt.Errorf("%d trips", n)
		}
		return nil
	})
	for i := maxTrips; i < 30; i++ {
		read(board, i)
	}
	read(text, 0)
	testkit.Eventually(t, 20*time.Second, func() error {
		o.reader.trips.mu.Lock()
		defer o.reader.trips.mu.Unlock()
		if n := len(o.reader.trips.waiting); n != 31-maxTrips {
			return fmt.Errorf("%d wait", n)
		}
		return nil
	})
	close(count.hold)
	reads.Wait()
	if n := count.trips.Load(); n != maxTrips+1 {
		t.Errorf("%d trips, want all that waited in one", n)
	}
}

// A board without a state is not asked for it again within some seconds, unless the caller bounds the answer.
func TestBareBoardsAreNotAskedForTheirState(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2})
	defer client.Close()
	board := testkit.Name(t)
	client.ZAdd(t.Context(), board, redis.Z{Score: 1, Member: "a"})
	t.Cleanup(func() { client.Del(context.Background(), board) })
	count := &tripCount{}
	client.AddHook(count)
	o := New(client, wire.DefaultNames())
	for i, want := range []int64{1, 1, 2} {
		q := rankcache.Query{Board: rankcache.BoardID(board), Members: []string{"a"}}
		if i == 2 {
			q.MinSeq = 1
		}
		if a := rankcache.One(t.Context(), o, q); a.Err != nil || a.Own[0].Rank != 1 || count.gets.Load() != want {
			t.Errorf("read %d: %+v, %v; %d states were read, want %d", i, a.Own, a.Err, count.gets.Load(), want)
		}
	}
}
