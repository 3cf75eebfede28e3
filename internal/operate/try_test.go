package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
	"rankcache/internal/try"
)

// MONITOR is used after a yes alone.
func TestTryAsks(t *testing.T) {
	t.Parallel()
	b := newVerifyBoard(t, 3)
	for answer, monitored := range map[string]bool{"y\n": true, "n\n": false, "": false} {
		cmd := NewCommand()
		cmd.SetIn(strings.NewReader(answer))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			for b.client.ZScore(ctx, string(b.id), "m1").Err() == nil {
			}
		})
		var out, errs bytes.Buffer
		must(t, cli.Run(t.Context(), cmd, []string{"try", "-o", "json", "--for", "1s", "--redis", "redis://" + testkit.Redis(t)}, &out, &errs))
		cancel()
		wg.Wait()
		var report try.Report
		must(t, json.Unmarshal(out.Bytes(), &report))
		if (report.Keys != nil) != monitored || report.Calls == 0 || !strings.Contains(errs.String(), "[y/N]") {
			t.Errorf("%q: %+v, asked %q", answer, report, &errs)
		}
	}
	for _, args := range [][]string{{"--for", "0"}, {"--for", "2m"}, {"--redis-mode", "cluster"}} {
		var out bytes.Buffer
		if err := cli.Run(t.Context(), NewCommand(), append([]string{"try", "--redis", "redis://" + testkit.Redis(t)}, args...), &out, &out); cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%q: %v, want a usage error", args, err)
		}
	}
}
