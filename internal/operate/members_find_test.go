package operate

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/cli"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

func TestMembersFind(t *testing.T) {
	addr := testkit.StartRedis(t, servers.RedisOptions{}).Addr()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { client.Close() })
	must(t, client.ZAdd(t.Context(), "lb:game:weekly", redis.Z{Member: "u-77", Score: 1}).Err())
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := cli.Run(t.Context(), NewMembersCommand(), append([]string{"find", "--redis", "redis://" + addr}, args...), &out, &out)
		return out.String(), err
	}
	text, err := run("--member", "u-77")
	if err != nil {
		t.Fatal(err)
	}
	var line string
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, "redis: boards  ") {
			line = strings.Join(strings.Fields(l), " ")
		}
	}
	if line != "redis: boards 1 - for ever lb:game:weekly" || !strings.Contains(text, "not looked at: no --database") || !strings.Contains(text, "not looked at: no --topics") {
		t.Errorf("%q of\n%s", line, text)
	}
	var report findReport
	if text, err = run("--member", "u-77", "-o", "json"); err != nil || json.Unmarshal([]byte(text), &report) != nil || report.Member != "u-77" || report.Places[0].Count != 1 {
		t.Errorf("%v: %s", err, text)
	}
	for _, args := range [][]string{{}, {"--member", "u", "--topics", "-1"}, {"--member", "u", "--topics", "5"}, {"--member", "u", "--rate", "0"}} {
		if _, err := run(args...); cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%v: %v", args, err)
		}
	}
	if text, err := run("--member", "u-77", "--database", "postgres://127.0.0.1:1/none"); cli.ExitCode(err) != cli.ExitDiffers || !strings.Contains(text, "ledger: rank_log") ||
		!strings.Contains(text, "NOT REACHED") || !strings.Contains(text, "lb:game:weekly") {
		t.Errorf("a database that is away: %v\n%s", err, text)
	}
}
