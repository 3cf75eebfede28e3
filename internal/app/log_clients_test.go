package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
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
	same := func() { t.Helper(); r.same(direct, r.board, first, second) }
	write := func(n int) {
		t.Helper()
		for i := range n {
			if err := client.ZIncrBy(ctx, r.board, float64(i), fmt.Sprint("m", i%13)).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(40)
	same()
	_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.ZAddArgs(ctx, r.board, redis.ZAddArgs{GT: true, Members: []redis.Z{{Score: 1.5, Member: "a"}, {Score: -3, Member: "b"}}})
		p.ZRem(ctx, r.board, "m1", "m2")
		p.Expire(ctx, r.board, time.Hour)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	write(20)
	same()
	r.post(1) // a writer goes on with the board
	write(20)
	same()
	for what, change := range map[string]func() error{
		"trimmed": func() error { return client.ZRemRangeByRank(ctx, r.board, 0, 3).Err() },
		"past it": func() error { return direct.ZAdd(ctx, r.board, redis.Z{Score: 9, Member: "foreign"}).Err() },
		"deleted": func() error { return client.Del(ctx, r.board).Err() },
		"deleted past": func() error {
			return errors.Join(direct.Del(ctx, r.board).Err(), direct.ZAdd(ctx, r.board, redis.Z{Score: 9, Member: "old"}).Err())
		},
		"renamed": func() error {
			return errors.Join(client.ZAdd(ctx, "draft", redis.Z{Score: 2, Member: "x"}).Err(), client.Rename(ctx, "draft", r.board).Err())
		},
	} {
		if err := change(); err != nil {
			t.Fatal(what, err)
		}
		write(15)
		same()
		t.Log(what)
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
