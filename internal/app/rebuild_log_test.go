package app

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/cli"
	"rankcache/internal/lab/compare"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/origin"
	"rankcache/wire"
)

// TestRebuildFromLog: Redis is emptied, and written to at once. The command puts the board back, without a database, and an open
// sidecar follows.
func TestRebuildFromLog(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	h := newFixtureOn(t, server.Addr())
	h.give(t, h.star, 20)
	s := h.serve(t)
	s.WaitReady(time.Minute)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2})
	t.Cleanup(func() { client.Close() })
	lost, err := client.ZRangeWithScores(t.Context(), string(h.star), 0, -1).Result()
	must(t, err)
	must(t, client.FlushAll(t.Context()).Err())
	h.giveTo(t, h.star, "m1", 5)

	run := func(more ...string) (string, error) {
		args := append(append([]string{"rebuild", "--from", "log", "--board", string(h.star)}, h.common...), more...)
		var out bytes.Buffer
		err := cli.Run(t.Context(), NewCommand(), args, &out, io.Discard)
		return out.String(), err
	}
	out, err := run("--dry-run")
	if err != nil || !strings.Contains(out, "same") {
		t.Errorf("of the new life: %v\n%s", err, out)
	}
	if out, err = run("--dry-run", "--earlier"); cli.ExitCode(err) != cli.ExitDiffers || !strings.Contains(out, "20 differ") {
		t.Errorf("of both lives: %v\n%s", err, out)
	}
	if out, err = run("--earlier"); err != nil || !strings.Contains(out, "20 members, 21 order ids") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, row := range lost {
		if row.Member == "m1" {
			row.Score += 5
		}
		if score, err := client.ZScore(t.Context(), string(h.star), row.Member.(string)).Result(); err != nil || score != row.Score {
			t.Errorf("%v has %v, want %v: %v", row.Member, score, row.Score, err)
		}
	}
	h.giveTo(t, h.star, "m2", 5)
	seq := testkit.BoardState(t, client, wire.DefaultNames(), h.star).Seq
	testkit.Eventually(t, time.Minute, func() error {
		_, err := compare.Board(t.Context(), http.DefaultClient, strings.TrimSuffix(s.URL("data", ""), "/"), h.star, origin.New(client, wire.DefaultNames()), seq)
		if err != nil {
			return err
		}
		page, err := compare.Fetch(t.Context(), http.DefaultClient, s.URL("data", "/v1/boards/"+string(h.star)+"/top"))
		if err == nil && page.Source != "local" {
			err = fmt.Errorf("answered from %s", page.Source)
		}
		return err
	})
	if _, err := run("--from", "ledger", "--earlier"); cli.ExitCode(err) != cli.ExitUsage {
		t.Errorf("%v, want exit code %d", err, cli.ExitUsage)
	}
	if out, err := run("--board", "unknown"); cli.ExitCode(err) != cli.ExitFailed || !strings.Contains(out, "there is no topic") {
		t.Errorf("a board that has no topic: %v\n%s", err, out)
	}
}
