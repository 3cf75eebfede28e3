package demo

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// Requests that the demo suggests for ports that were free.
var (
	readsByRedisClient = regexp.MustCompile(`\n  redis-cli -p [1-9]\d+ ZREVRANGE \S+ 0 9 WITHSCORES\n`)
	watches            = regexp.MustCompile(`\n  curl -N 'http://127\.0\.0\.1:[1-9]\d+/v1/boards/\S+/live\?limit=3'`)
)

func TestDemoEndsEqual(t *testing.T) {
	var out, errs bytes.Buffer
	err := cli.Run(t.Context(), NewCommand(), []string{"--members", "3000", "--duration", "3s", "--rate", "500",
		"--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0", "--profile-faults"}, &out, &errs)
	finals := regexp.MustCompile(`\n\* yesterday's race demo_tonight_race:\d{8}-\d+, .* from its final:  1\. .* 61\.500 s  2\. .* 61\.750 s  3\. .* 62\.000 s\n`)
	if text := out.String(); !finals.MatchString(text) && (os.Getenv("RANKCACHE_REQUIRE_REAL") != "" || !strings.Contains(text, "no PostgreSQL is found")) {
		t.Error("no final is shown")
	}
	if err != nil || !strings.Contains(out.String(), "Equal: 3000 entries") || !readsByRedisClient.MatchString(out.String()) || !watches.MatchString(out.String()) {
		t.Errorf("%v\n%s\n%s", err, out.String(), errs.String())
	}
}

// wanted is what the demo prints; it ends the demo when all of its lines are there.
type wanted struct {
	bytes.Buffer
	lines []*regexp.Regexp
	end   func()
}

func (w *wanted) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if w.missing() == nil {
		w.end()
	}
	return n, err
}

func (w *wanted) missing() *regexp.Regexp {
	for _, line := range w.lines {
		if !line.Match(w.Bytes()) {
			return line
		}
	}
	return nil
}

func TestDemoShowsPeriods(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := &wanted{end: cancel, lines: []*regexp.Regexp{
		regexp.MustCompile(`\n\* period 2 begins: board demo_tonight_gift:\d{8}-\d+, \d+ of [1-9]\d* reads from Redis, \d+ failed\n`),
		regexp.MustCompile(`\n\* period \d+, top 3:.*[↓=] [123]\. `), // was on the board before
		regexp.MustCompile(`\n\* period \d+, best lap times:  1\. .* 6\d\.\d{3} s  2\. .* 6\d\.\d{3} s  3\. `),
		regexp.MustCompile(`\n\* period \d+, flood of 300 commands by one member: [1-9]\d* refused`),
	}}
	var errs bytes.Buffer
	err := cli.Run(ctx, NewCommand(), []string{"--members", "100", "--period", "2s", "--rate", "100",
		"--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0"}, out, &errs)
	if line := out.missing(); err != nil || line != nil || !strings.Contains(out.String(), "Equal: 100 entries") {
		t.Errorf("%v, missing %v\n%s\n%s", err, line, out.String(), errs.String())
	}
}

func TestTrendArrow(t *testing.T) {
	two := 2
	for _, c := range []struct {
		rank   int
		before *int
		want   string
	}{{2, nil, "↑"}, {1, &two, "↑"}, {2, &two, "="}, {3, &two, "↓"}} {
		if got := trendArrow(c.rank, c.before); got != c.want {
			t.Errorf("rank %d: got %s, want %s", c.rank, got, c.want)
		}
	}
}
