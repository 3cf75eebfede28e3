package operate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// newBigRedis is a Redis with two boards, other sorted sets and 1,500 other keys.
func newBigRedis(t *testing.T) (addr string, client *redis.Client) {
	t.Helper()
	addr = testkit.StartRedis(t, servers.RedisOptions{}).Addr()
	client = redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
	t.Cleanup(func() { client.Close() })
	for id, members := range map[rankcache.BoardID]int{"large": 3000, "small": 10} {
		b := fill.NewBoard(id)
		for i := range members {
			b.Set(fmt.Sprint("m", i), float64(i))
		}
		must(t, b.Redis(t.Context(), client, wire.DefaultNames(), time.Hour))
	}
	must(t, client.HSet(t.Context(), wire.DefaultNames().OrdersKey("large", 0, 0), "a", "1", "b", "2").Err())
	_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 500 {
			p.ZAdd(t.Context(), "foreign's", redis.Z{Member: i})
			p.ZAdd(t.Context(), fmt.Sprint("tiny-", i), redis.Z{Member: i})
			p.Set(t.Context(), fmt.Sprint("string-", i), "x", 0)
			p.HSet(t.Context(), fmt.Sprint("hash-", i), "f", "v")
		}
		return nil
	})
	must(t, err)
	return addr, client
}

// findBig runs rankcache big.
func findBig(t *testing.T, addr string, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"big", "--redis", "redis://" + addr, "--redis-timeout", "20s", "--rate", "1000000"}, args...)
	err := cli.Run(t.Context(), NewCommand(), args, &out, &errs)
	return out.String(), errs.String() + fmt.Sprint(err), cli.ExitCode(err)
}

func TestBig(t *testing.T) {
	addr, client := newBigRedis(t)
	before, err := client.DBSize(t.Context()).Result()
	must(t, err)
	out, progress, exit := findBig(t, addr, "--top", "3", "-o", "json")
	var report bigReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || exit != cli.ExitOK {
		t.Fatalf("exit %d, %v: %s%s", exit, err, out, progress)
	}
	if !report.Complete || report.Keys == nil || *report.Keys != before || report.Walked != before || report.Boards != 2 || report.SortedSets != 503 {
		t.Errorf("%+v", report)
	}
	if !strings.Contains(progress, fmt.Sprintf("about 200 of %d keys are walked", before)) {
		t.Errorf("progress is %q", progress)
	}
	if len(report.Largest) != 3 {
		t.Fatalf("%d are listed: %s", len(report.Largest), out)
	}
	large, other, small := report.Largest[0], report.Largest[1], report.Largest[2]
	if large.Key != "large" || large.Board != "large" || large.Members != 3000 || large.Bytes < 3000*20 || large.Orders != 2 || large.OrdersBytes == 0 || large.Expires == nil {
		t.Errorf("the large board is %+v", large)
	}
	if other.Key != "foreign's" || other.Board != "" || other.Members != 500 || other.Bytes == 0 || other.Expires != nil {
		t.Errorf("the other sorted set is %+v", other)
	}
	if small.Board != "small" || small.Members != 10 {
		t.Errorf("the small board is %+v", small)
	}
	if after, err := client.DBSize(t.Context()).Result(); err != nil || after != before {
		t.Errorf("%d keys before and %d after, %v", before, after, err)
	}
}

func TestBigAsText(t *testing.T) {
	addr, client := newBigRedis(t)
	for i := range 600 {
		must(t, client.ZAdd(t.Context(), "lb:eu:weekly", redis.Z{Member: i}).Err())
	}
	out, _, exit := findBig(t, addr, "--top", "3")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if exit != cli.ExitOK || len(lines) != 6 {
		t.Fatalf("exit %d:\n%s", exit, out)
	}
	for i, want := range []string{"MEMBERS", "3000 ", "600 ", "500 ", "foreign: " + notWritten, "504 sorted sets, 2 of them boards, among about "} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %q, want %s…", i, lines[i], want)
		}
	}
	if !strings.HasSuffix(lines[1], "  board    large") || !strings.HasSuffix(lines[2], "  foreign  lb:eu:weekly") || !strings.HasSuffix(lines[3], `  other    "foreign's"`) {
		t.Errorf("\n%s", out)
	}
}

// TestBigEndsAtItsLimit: and only then prints that there may be larger ones.
func TestBigEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	addr, _ := newBigRedis(t)
	for limit, complete := range map[string]bool{"200": false, "1000000": true, "0": true} {
		out, errs, exit := findBig(t, addr, "--limit", limit, "-o", "json")
		var report bigReport
		if err := json.Unmarshal([]byte(out), &report); err != nil || exit != cli.ExitOK {
			t.Fatalf("exit %d, %v: %s%s", exit, err, out, errs)
		}
		if report.Complete != complete || !complete && report.Walked != 200 {
			t.Errorf("--limit %s: complete %t after %d keys", limit, report.Complete, report.Walked)
		}
	}
	if out, _, _ := findBig(t, addr, "--limit", "200"); !strings.Contains(out, "there may be larger ones") {
		t.Error(out)
	}
	empty := testkit.StartRedis(t, servers.RedisOptions{}).Addr()
	if out, errs, exit := findBig(t, empty, "--limit", "1", "-o", "json"); exit != cli.ExitOK || !strings.Contains(out, `"complete": true`) || !strings.Contains(out, `"largest": []`) {
		t.Errorf("an empty Redis: exit %d, %s%s", exit, out, errs)
	}
}

func TestBigRefuses(t *testing.T) {
	for _, args := range [][]string{{"--top", "0"}, {"--top", "1001"}, {"--limit", "-1"}, {"--rate", "0"}, {"--rate", "1000001"}, {"board"}} {
		if _, errs, exit := findBig(t, "127.0.0.1:1", args...); exit != cli.ExitUsage {
			t.Errorf("%v: exit %d, %s", args, exit, errs)
		}
	}
	if out, errs, exit := findBig(t, "127.0.0.1:1"); exit != cli.ExitFailed || out != "" || !strings.Contains(errs, "check that the address of Redis is right") {
		t.Errorf("no Redis: exit %d, %s%s", exit, out, errs)
	}
}

// TestBigKeepsTheLargest, and a key that SCAN returns twice once.
func TestBigKeepsTheLargest(t *testing.T) {
	w := &bigWalk{top: 3}
	for _, s := range []bigSet{{"c", 3, nil}, {"a", 1, nil}, {"e", 5, nil}, {"e", 6, nil}, {"b", 3, nil}, {"d", 3, nil}, {"e", 6, nil}, {"f", 0, nil}} {
		w.keep(s)
	}
	var got []string
	for _, s := range w.largest {
		got = append(got, fmt.Sprint(s.key, s.members))
	}
	if want := []string{"e6", "b3", "c3"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
