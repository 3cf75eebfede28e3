package demo

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"rankcache/internal/app"
	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var readsByRedisClient = regexp.MustCompile(`\n  redis-cli -p [1-9]\d+ ZREVRANGE \S+ 0 9 WITHSCORES\n`)

func TestDemoEndsEqual(t *testing.T) {
	var out, errs bytes.Buffer
	err := app.Run(t.Context(), NewCommand(), []string{"--members", "3000", "--duration", "3s", "--rate", "500",
		"--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0", "--profile-faults"}, &out, &errs)
	if err != nil || !strings.Contains(out.String(), "Equal: 3000 entries") || !readsByRedisClient.MatchString(out.String()) {
		t.Errorf("%v\n%s\n%s", err, out.String(), errs.String())
	}
}
