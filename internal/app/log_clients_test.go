package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// The app of examples/clients/redis_py gets the same replies from a sidecar as from Redis, and all its boards are whole
// in another sidecar, with what Redis has.
func TestAppOfRedisPy(t *testing.T) {
	t.Parallel()
	r := newLogInRedis(t)
	bare := testkit.StartRedis(t, servers.RedisOptions{})
	serve, other := r.start("serve", "--resp", "127.0.0.1:0", "--redis-timeout", "10s"), r.start("serve")
	serve.becomesReady("serve")
	other.becomesReady("serve")
	python, changes := testkit.Fetched(t, "python/bin/python"), fmt.Sprint(testkit.Sized(600, 6000))
	replies := func(address string) string {
		t.Helper()
		_, port, _ := net.SplitHostPort(address)
		out, err := exec.CommandContext(t.Context(), python, "../../examples/clients/redis_py/app.py", "--port", port, "--changes", changes).CombinedOutput()
		_, digest, found := strings.Cut(string(out), "replies ")
		if err != nil || !found {
			t.Fatalf("%v: %s", err, out)
		}
		return digest
	}
	if want, got := replies(bare.Addr()), replies(strings.TrimPrefix(serve.URL("resp", ""), "http://")); got != want {
		t.Errorf("replies %s, want Redis's, %s", got, want)
	}
	direct := redis.NewClient(&redis.Options{Addr: r.redis.Addr()})
	t.Cleanup(func() { _ = direct.Close() })
	board := func(n int) string { return fmt.Sprintf("lb:game%d:weekly", n) }
	for n := range 30 {
		other.Get("data", "/v1/boards/"+board(n)+"/top") // by which it is found
	}
	for n := range 30 {
		r.same(direct, board(n), other)
	}
}

// An app that keeps its client of Redis writes a board through one sidecar, and it is whole in another: without Kafka,
// from the board's birth on, for a sorted set that was there before, and after commands that have it added up again.
func TestClientsWriteWholeBoards(t *testing.T) {
	t.Parallel()
	r := newLogInRedis(t)
	direct := redis.NewClient(&redis.Options{Addr: r.redis.Addr()})
	first, second := r.start("serve", "--resp", "127.0.0.1:0"), r.start("serve")
	first.becomesReady("serve")
	second.becomesReady("serve")
	client := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(first.URL("resp", ""), "http://")})
	t.Cleanup(func() { _, _ = client.Close(), direct.Close() })
	ctx := t.Context()
	same := func(board string) { t.Helper(); r.same(direct, board, first, second) }
	write := func(board string, n int) {
		t.Helper()
		for i := range n {
			if err := client.ZIncrBy(ctx, board, float64(i), fmt.Sprint("m", i%13)).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(r.board, 40)
	same(r.board)
	_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.ZAddArgs(ctx, r.board, redis.ZAddArgs{GT: true, Members: []redis.Z{{Score: 1.5, Member: "a"}, {Score: -3, Member: "b"}}})
		p.ZRem(ctx, r.board, "m1", "m2")
		p.Expire(ctx, r.board, time.Hour)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	write(r.board, 20)
	same(r.board)
	r.post(1) // a writer goes on with the board
	write(r.board, 20)
	same(r.board)
	for what, change := range map[string]func(board string) error{
		"trimmed": func(b string) error { return client.ZRemRangeByRank(ctx, b, 0, 3).Err() },
		"past it": func(b string) error { return direct.ZAdd(ctx, b, redis.Z{Score: 9, Member: "foreign"}).Err() },
		"deleted": func(b string) error { return client.Del(ctx, b).Err() },
		"deleted past": func(b string) error {
			return errors.Join(direct.Del(ctx, b).Err(), direct.ZAdd(ctx, b, redis.Z{Score: 9, Member: "old"}).Err())
		},
		"renamed": func(b string) error {
			return errors.Join(client.ZAdd(ctx, "draft", redis.Z{Score: 2, Member: "x"}).Err(), client.Rename(ctx, "draft", b).Err())
		},
	} {
		board := "lb:" + strings.ReplaceAll(what, " ", "-") + ":weekly"
		write(board, 40)
		same(board)
		if err := change(board); err != nil {
			t.Fatal(what, err)
		}
		write(board, 15)
		same(board)
		t.Log(what)
	}
}

// A board that something changes past the sidecars three times within ten minutes is answered by Redis for ten minutes.
func TestBoardsThatAreNotWhole(t *testing.T) {
	t.Parallel()
	r := newLogInRedis(t)
	direct := redis.NewClient(&redis.Options{Addr: r.redis.Addr()})
	t.Cleanup(func() { direct.Close() })
	serve := r.start("serve")
	serve.becomesReady("serve")
	left := func() bool {
		_, body := serve.Get("admin", "/status")
		return strings.Contains(body, "it differed from Redis 3 times within 10m0s, as something changes it past rankcache")
	}
	for n := range 3 {
		r.post(5)
		r.same(direct, r.board, serve)
		if left() {
			t.Fatalf("it is left to Redis after %d changes", n)
		}
		must(t, direct.ZAdd(t.Context(), r.board, redis.Z{Score: float64(n), Member: "foreign" + fmt.Sprint(n)}).Err())
		r.post(1) // the writer adds it up
	}
	testkit.Eventually(t, time.Minute, func() error {
		if _, body := serve.Get("data", "/v1/boards/"+r.board+"/top"); !left() || strings.Contains(body, `"source":"local"`) || !strings.Contains(body, "foreign2") {
			return errors.New(body)
		}
		return nil
	})
}

// A sidecar that is killed while a client writes through it leaves no change out of the log: another one follows without
// filling the board again.
func TestSidecarIsKilledUnderWrites(t *testing.T) {
	t.Parallel()
	r, addr := newLogInRedis(t), freePorts(t, "resp")["resp"]
	direct, client := redis.NewClient(&redis.Options{Addr: r.redis.Addr()}), redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _, _ = client.Close(), direct.Close() })
	other, serve := r.start("serve"), r.start("serve", "--resp", addr)
	other.becomesReady("serve")
	serve.becomesReady("serve")
	must(t, client.ZAdd(t.Context(), r.board, redis.Z{Score: 1, Member: "first"}).Err())
	r.same(direct, r.board, serve, other)
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	var written atomic.Int64
	for w := range 3 {
		writing.Go(func() {
			for i := 0; ctx.Err() == nil; i++ { // what fails meanwhile is done or not
				_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
					p.ZIncrBy(t.Context(), r.board, float64(i%7), fmt.Sprint("m", w, "-", i%90))
					p.ZRemRangeByRank(t.Context(), r.board, 0, -101)
					return nil
				})
				if err == nil {
					written.Add(1)
				}
			}
		})
	}
	for range 3 {
		before := written.Load()
		testkit.Eventually(t, time.Minute, func() error {
			if n := written.Load() - before; n < 200 {
				return fmt.Errorf("%d writes", n)
			}
			return nil
		})
		serve.Kill()
		serve = r.start("serve", "--resp", addr)
		serve.becomesReady("serve")
	}
	stop()
	writing.Wait()
	r.same(direct, r.board, serve, other)
	if n := other.series(t, "rankcache_replay_refills_total"); n != 0 {
		t.Errorf("the board was filled again %v times", n)
	}
}

// same waits until sidecars answer a board from their memory with what Redis has.
func (r *logInRedis) same(direct *redis.Client, board string, sidecars ...*child) {
	r.Helper()
	testkit.Eventually(r, time.Minute, func() error {
		rows, err := direct.ZRevRangeWithScores(r.Context(), board, 0, 99).Result()
		if err != nil {
			return err
		}
		for _, s := range sidecars {
			_, body := s.Get("data", "/v1/boards/"+board+"/top?limit=100")
			var page struct {
				Source  string
				Entries []struct {
					Member string
					Score  float64
				}
			}
			if err := json.Unmarshal([]byte(body), &page); err != nil || page.Source != "local" || len(page.Entries) != len(rows) {
				return fmt.Errorf("%v: want %d rows, got %s", err, len(rows), body)
			}
			for i, row := range rows {
				if e := page.Entries[i]; e.Member != row.Member || e.Score != row.Score {
					return fmt.Errorf("row %d is %v, want %v", i, e, row)
				}
			}
		}
		return nil
	})
}
