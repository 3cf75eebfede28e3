package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/cli"
	"rankcache/internal/lab/compare"
	"rankcache/internal/testkit"
	"rankcache/origin"
	"rankcache/wire"
)

// TestRebuild: the command writes a board anew that was changed by hand, and one that is gone;
// an open sidecar follows, and goes on with what is posted then.
func TestRebuild(t *testing.T) {
	t.Parallel()
	topic := testkit.Name(t)
	h := newFixture(t, "--topic-ledger", topic, "--ledger-partitions", "1")
	h.give(t, h.star, 20)
	url := testkit.Database(t, testkit.SQLKinds[0])
	startListening(t, append([]string{"ledger", "--http", "127.0.0.1:0", "--database", url, "--topic-ledger", topic, "--ledger-group", topic}, h.common...)...)
	s := h.serve(t)
	s.WaitReady(time.Minute)
	client := h.redis(t)
	state := testkit.BoardState(t, client, wire.DefaultNames(), h.star)
	run := func(more ...string) (string, error) {
		args := append([]string{"rebuild", "--board", string(h.star), "--database", url, "--redis", "redis://" + testkit.Redis(t), "--redis-timeout", "2s",
			"--rooms", h.rooms, "--key-rooms", h.common[len(h.common)-1]}, more...)
		var out bytes.Buffer
		err := cli.Run(t.Context(), NewCommand(), args, &out, io.Discard)
		return out.String(), err
	}
	testkit.Eventually(t, time.Minute, func() error { // the ledger has it
		out, err := run("--dry-run")
		if err == nil && !strings.Contains(out, "same") {
			err = errors.New(out)
		}
		return err
	})
	follows := func(seq uint64) {
		t.Helper()
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
	}

	must(t, client.ZAdd(t.Context(), string(h.star), redis.Z{Member: "m3", Score: 1000}, redis.Z{Member: "thief", Score: 500}).Err())
	out, err := run("--dry-run", "-o", "json")
	if exit, ok := errors.AsType[*cli.ExitError](err); !ok || exit.Code != cli.ExitDiffers || !strings.Contains(out, `"members_that_differ": 2`) || !strings.Contains(out, `"member": "thief"`) {
		t.Errorf("a dry run of a board with two wrong scores: %v\n%s", err, out)
	}
	out, err = run()
	if err != nil || !strings.Contains(out, "20 members, 20 order ids") {
		t.Fatalf("%v\n%s", err, out)
	}
	follows(state.Seq)

	keys, err := client.Keys(t.Context(), "*"+string(h.star)+"*").Result()
	must(t, err)
	must(t, client.Del(t.Context(), keys...).Err())
	if out, err = run(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	follows(state.Seq)
	h.giveTo(t, h.star, "m1", 5)
	follows(state.Seq + 1)

	_, err = testkit.SQL(t, url).ExecContext(t.Context(), "UPDATE rank_board SET class = 'all'")
	must(t, err)
	classes := filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(classes, []byte("classes: [{name: all, board: \"all:{zone}\", period: none, ledger: true}]\n"), 0o600))
	testkit.Eventually(t, time.Minute, func() error { // the ledger has the last post
		out, err := run("--board", "", "--class", "all", "--rooms", classes, "--dry-run")
		if err == nil && !strings.Contains(out, string(h.star)+"  same") {
			err = errors.New(out)
		}
		return err
	})
	if out, err = run("--board", "", "--class", "all", "--rooms", classes, "-o", "json"); err != nil || strings.Count(out, `"result": "rebuilt"`) != 1 {
		t.Errorf("%v\n%s", err, out)
	}
	follows(state.Seq + 1)

	for _, args := range [][]string{{"--class", "nothing"}, {"--board", ""}, {"--board", "not a board"}, {"--wait", "0s"}} {
		if _, err := run(args...); cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%v: %v, want exit code %d", args, err, cli.ExitUsage)
		}
	}
	if out, err = run("--board", "unknown", "--wait", "1s"); cli.ExitCode(err) != cli.ExitFailed || !strings.Contains(out, "no such board") {
		t.Errorf("a board that the ledger does not have: %v\n%s", err, out)
	}
}
