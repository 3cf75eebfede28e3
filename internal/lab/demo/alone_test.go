package demo

import (
	"bytes"
	"regexp"
	"strconv"
	"testing"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

// The app's reads are Redis's without a sidecar and hardly any with one, and the boards are equal in the end.
func TestAloneEndsEqual(t *testing.T) {
	testkit.Redis(t) // skips or fails where there is no redis-server
	var out, errs bytes.Buffer
	err := cli.Run(t.Context(), NewAloneCommand(), []string{"--members", "1500", "--each", "2s", "--duration", "4s", "--changes", "40", "--reads", "400",
		"--resp", "127.0.0.1:0", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0"}, &out, &errs)
	for _, line := range []string{
		`\n  redis-cli -h 127\.0\.0\.1 -p [1-9]\d+ ZREVRANGE lb:game0:weekly 0 9 WITHSCORES\n`,
		`lb:game0:weekly  source local `,
		`\nEqual: 30 boards, 7300 entries, one by one\.\n`,
	} {
		if !regexp.MustCompile(line).MatchString(out.String()) {
			t.Errorf("no line like %s", line)
		}
	}
	measured := regexp.MustCompile(`(\d+) reads\n +Redis answered (\d+) pages and ranks`).FindAllStringSubmatch(out.String(), -1)
	if len(measured) != 2 {
		t.Fatalf("%v\n%s\n%s", err, out.String(), errs.String())
	}
	for i, m := range measured {
		reads, errReads := strconv.Atoi(m[1])
		answers, errAnswers := strconv.Atoi(m[2])
		if errReads != nil || errAnswers != nil || i == 0 && answers < 2*reads || i == 1 && answers > reads/2 {
			t.Errorf("Redis answered %s pages and ranks of %s reads", m[2], m[1])
		}
	}
	if err != nil || errs.Len() > 0 || t.Failed() {
		t.Errorf("%v\n%s\n%s", err, out.String(), errs.String())
	}
}
