package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/internal/lab/compare"
)

type boardID = rankcache.BoardID

const (
	aloneBoards  = 30
	aloneSmall   = 200 // members of all boards but the first
	aloneReaders = 4   // connections that read
	aloneWait    = time.Minute
)

func aloneBoard(n int) boardID { return boardID(fmt.Sprintf("lb:game%d:weekly", n)) }

// fill makes the boards as an app has them before it has heard of rankcache.
func (d *aloneRun) fill(ctx context.Context) error {
	for n := range aloneBoards {
		members := aloneSmall
		if n == 0 {
			members = d.members
		}
		for from := 0; from < members; from += 1000 {
			var rows []redis.Z
			for i := from; i < min(from+1000, members); i++ {
				rows = append(rows, redis.Z{Score: float64(rand.IntN(100_000)), Member: fmt.Sprintf("player-%d", i)})
			}
			if err := d.redis.ZAdd(ctx, string(aloneBoard(n)), rows...).Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitWhole changes and reads the boards until the sidecar has them all in memory.
func (d *aloneRun) awaitWhole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, aloneWait)
	defer cancel()
	app := newAloneApp(d, d.sidecar.Addr("resp"))
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- app.run(running) }()
	left := aloneBoards
	for ; left > 0 && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		left = aloneBoards
		for n := range aloneBoards {
			page, err := compare.Fetch(ctx, d.client, fmt.Sprintf("http://%s/v1/boards/%s/top?limit=1", d.sidecar.Addr("data"), aloneBoard(n)))
			if err == nil && page.Source == "local" {
				left--
			}
		}
	}
	stop()
	if err := <-done; err != nil {
		return err
	}
	if left > 0 {
		return fmt.Errorf("%d boards are not whole in memory after %v: %w", left, aloneWait, ctx.Err())
	}
	return nil
}

// measure runs the app against an address, and prints what it did, and what Redis did meanwhile.
func (d *aloneRun) measure(ctx context.Context, what, addr string) error {
	before, err := d.load(ctx)
	if err != nil {
		return err
	}
	app, begun := newAloneApp(d, addr), time.Now()
	running, cancel := context.WithTimeout(ctx, d.each)
	defer cancel()
	if err := app.run(running); err != nil {
		return err
	}
	lasted := time.Since(begun).Seconds()
	after, err := d.load(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	fmt.Fprintf(d.stdout, "%s: %.0f s, %d changes, %d reads\n         Redis answered %d pages and ranks, and took %.1f %% of a core\n", what, lasted,
		app.changed.Load(), app.read.Load(), after.calls-before.calls, 100*(after.cpu-before.cpu)/lasted)
	return ctx.Err()
}

// aloneLoad is what Redis has done.
type aloneLoad struct {
	calls int64   // of the commands that the app reads pages and ranks by
	cpu   float64 // seconds
}

func (d *aloneRun) load(ctx context.Context) (l aloneLoad, err error) {
	text, err := d.redis.Info(ctx, "commandstats", "cpu").Result()
	if err != nil {
		return l, err
	}
	for line := range strings.Lines(text) {
		var calls int64
		var seconds float64
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "cmdstat_zrevrange", "cmdstat_zrevrank":
			_, err = fmt.Sscanf(value, "calls=%d", &calls)
		case "used_cpu_user", "used_cpu_sys":
			_, err = fmt.Sscan(value, &seconds)
		}
		if err != nil {
			return l, fmt.Errorf("redis tells of its load %q: %w", line, err)
		}
		l.calls, l.cpu = l.calls+calls, l.cpu+seconds
	}
	return l, nil
}

// aloneApp is an app that keeps leaderboards in sorted sets.
type aloneApp struct {
	*aloneRun
	addr          string
	changed, read atomic.Int64
}

func newAloneApp(d *aloneRun, addr string) *aloneApp { return &aloneApp{aloneRun: d, addr: addr} }

// run changes and reads boards until ctx is done.
func (a *aloneApp) run(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{Addr: a.addr})
	defer client.Close()
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error {
		return pace(ctx, a.changes, func() error {
			a.changed.Add(1)
			return client.ZIncrBy(context.WithoutCancel(ctx), a.board(), float64(1+rand.IntN(100)), a.player()).Err()
		})
	})
	for range aloneReaders {
		parts.Go(func() error {
			return pace(ctx, max(a.reads/aloneReaders, 1), func() error {
				a.read.Add(1)
				board, player := a.board(), a.player()
				_, err := client.Pipelined(context.WithoutCancel(ctx), func(p redis.Pipeliner) error {
					p.ZRevRangeWithScores(ctx, board, 0, 9)
					p.ZRevRank(ctx, board, player)
					p.ZScore(ctx, board, player)
					return nil
				})
				return err
			})
		})
	}
	return parts.Wait()
}

// board draws a board: every second one is the largest.
func (a *aloneApp) board() string {
	if rand.IntN(2) == 0 {
		return string(aloneBoard(0))
	}
	return string(aloneBoard(rand.IntN(aloneBoards)))
}

func (a *aloneApp) player() string { return fmt.Sprintf("player-%d", rand.IntN(aloneSmall)) }

// pace calls do so often a second until ctx is done.
func pace(ctx context.Context, rate int, do func() error) error {
	begun := time.Now()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(begun.Add(time.Duration(n) * time.Second / time.Duration(rate)))):
		}
		if err := do(); err != nil {
			return err
		}
	}
}

// hostAndPort returns an address as redis-cli takes it behind -h.
func hostAndPort(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	return host + " -p " + port
}
