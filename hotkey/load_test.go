package hotkey

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// redisOrigin reads tops with one ZREVRANGE each.
type redisOrigin struct{ rdb *redis.Client }

func (o redisOrigin) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	pipe := o.rdb.Pipeline()
	cmds := make([]*redis.ZSliceCmd, len(qs))
	for i, q := range qs {
		cmds[i] = pipe.ZRevRangeWithScores(ctx, string(q.Board), 0, int64(q.Limit-1))
	}
	_, _ = pipe.Exec(ctx)
	for i := range qs {
		rows, err := cmds[i].Result()
		if err != nil {
			as[i].Fail(err)
			continue
		}
		as[i].Begin(&qs[i], rankcache.SourceRedis, rankcache.Stamp{At: time.Now()}, time.Now())
		for _, z := range rows {
			as[i].Entries = append(as[i].Entries, rankcache.Entry{Member: z.Member.(string), Score: z.Score})
		}
	}
}

// readsSeen returns how many ZREVRANGE the server has run.
func readsSeen(t *testing.T, rdb *redis.Client) int {
	t.Helper()
	info, err := rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "cmdstat_zrevrange:calls=")
	digits, _, _ := strings.Cut(rest, ",")
	n, _ := strconv.Atoi(digits)
	return n
}

// writeSteadily transitions the board perSecond times a second until ctx is done.
func writeSteadily(ctx context.Context, rdb *redis.Client, b rankcache.BoardID, perSecond int) error {
	const perTick = 20 * time.Millisecond
	tick := time.NewTicker(perTick)
	defer tick.Stop()
	for member := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		pipe := rdb.Pipeline()
		for range perSecond * int(perTick) / int(time.Second) {
			member++
			pipe.ZIncrBy(ctx, string(b), 1, strconv.Itoa(member%1000))
		}
		if _, err := pipe.Exec(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// A board written 5,000 times a second and read as fast as two readers can, on
// a real Redis: it is read there about once a second. That its page stays under
// 1.3 s old is shown in virtual time (refresh_test.go); here its age is logged.
func TestHotBoardUnderLoad(t *testing.T) {
	const b = rankcache.BoardID("1_2_3")
	window := testkit.Sized(2, 5)
	addr := testkit.StartRedis(t, servers.RedisOptions{}).Addr() // alone, to count its commands
	rdb, ctx := newClient(t, addr), t.Context()
	tr := newTestTracker(t, Config{}, redisOrigin{newClient(t, addr)})
	load, cancel := context.WithCancel(ctx)
	defer cancel()
	var running errgroup.Group
	running.Go(func() error { return tr.Run(load) })
	running.Go(func() error { return writeSteadily(load, newClient(t, addr), b, 5000) })
	var oldest [2]time.Duration
	for r := range oldest {
		running.Go(func() error {
			for load.Err() == nil {
				tr.Count(b)
				if _, at, ok := top(tr, b); ok {
					oldest[r] = max(oldest[r], time.Since(at))
				}
			}
			return nil
		})
	}
	reached := func(n int, since time.Time, before int) {
		testkit.Eventually(t, 60*time.Second, func() error {
			if got := readsSeen(t, rdb) - before; got < n {
				return fmt.Errorf("%d reads in %v", got, time.Since(since))
			}
			return nil
		})
	}
	reached(1, time.Now(), 0) // promoted by its own rate
	begin, before := time.Now(), readsSeen(t, rdb)
	reached(window, begin, before)
	elapsed, seen := time.Since(begin), readsSeen(t, rdb)-before
	cancel()
	if err := running.Wait(); err != nil {
		t.Fatal(err)
	}
	if most := int(elapsed.Seconds()/0.9) + 2; seen > most {
		t.Errorf("%d reads reached Redis in %v, want at most %d", seen, elapsed, most)
	}
	hits := (*tr.pages.Load())[b].hits.Load()
	if hits < 1000*uint64(seen) {
		t.Errorf("%d reads were answered locally and %d by Redis", hits, seen)
	}
	t.Logf("%d local reads, %d of Redis in %v; oldest page %v", hits, seen, elapsed.Round(time.Millisecond), max(oldest[0], oldest[1]).Round(time.Millisecond))
}
