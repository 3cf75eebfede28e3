package app

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"rankcache/internal/cli"
)

// gone are the flags of earlier versions that are no more, with what they were by default.
var gone = map[string]string{"request-cache": "true", "give-up-per-update": "50µs", "metrics-largest": "10", "hot-promote-seconds": "2", "hot-exit-rate": "25",
	"hot-listed-rate": "2", "hot-listed-exit-rate": "1", "hot-verdict-age": "30s", "hot-fetch-timeout": "1s", "hot-idle": "10s", "profile-batch": "100", "profile-calls": "8",
	"poll-timeout": "5s", "poll-lease": "1.5s", "poll-id": "me", "hotkeys-min-cpu": "1ms", "key-adopter": "{<board>}:adopter", "key-guard": "{<board>}:guard",
	"key-scores": "{<board>}:scores", "key-readopt": "rankcache:readopt", "key-absent-topics": "rankcache:topics:absent", "key-room-ends": "rankcache:room-ends",
	"key-order": "{<board>}:order:<order>", "key-seq": "{<board>}:seq", "ledger": "classes"}

// TestGoneFlags: a flag that is gone is taken as it was by default, in each form, with a warning; one that named data otherwise
// ends the start with what to do, and none is answered with the name of another.
func TestGoneFlags(t *testing.T) {
	run := func(args ...string) (code int, said string) {
		var errs bytes.Buffer
		err := cli.Run(t.Context(), NewCommand(), args, &bytes.Buffer{}, &errs)
		if err != nil {
			errs.WriteString(err.Error())
		}
		return cli.ExitCode(err), errs.String()
	}
	for name, was := range gone {
		for _, args := range [][]string{{"config", "--" + name + "=" + was}, {"config", "poll", "--" + name + "=" + was}} {
			if code, said := run(args...); code != cli.ExitOK || strings.Count(said, "--"+name+" is gone") != 1 {
				t.Errorf("%q: %d %s", args, code, said)
			}
		}
		variable := "RANKCACHE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		t.Setenv(variable, was)
		if code, said := run("config", "write"); code != cli.ExitOK || !strings.Contains(said, "--"+name+" is gone") {
			t.Errorf("%s: %d %s", variable, code, said)
		}
		must(t, os.Unsetenv(variable))
		code, said := run("config", "--"+name+"=other")
		if named, does := strings.HasPrefix(name, "key-"), map[bool]string{true: "RENAME", false: "a class with ledger: true"}; (named || name == "ledger") != (code == cli.ExitUsage) || code == cli.ExitUsage && !strings.Contains(said, does[named]) || strings.Contains(said, "did you mean") {
			t.Errorf("--%s=other: %d %s", name, code, said)
		}
	}
	for _, name := range []string{"key-gard", "topic-comands-x"} {
		if code, said := run("config", "--"+name+"=x"); code != cli.ExitUsage || strings.Contains(said, "did you mean") {
			t.Errorf("--%s: %d %s", name, code, said)
		}
	}
	if code, said := run("config", "write", "--admin-token=hush"); code != cli.ExitOK || strings.Contains(said, "hush") || !strings.Contains(said, "--admin-token is gone") {
		t.Errorf("--admin-token: %d %s", code, said)
	}
	t.Setenv("RANKCACHE_ADMIN_TOKEN", "hush")
	if code, said := run("config", "write"); code != cli.ExitOK || slices.Contains(strings.Fields(said), "gone") {
		t.Errorf("a token of serve in an environment that all share: %d %s", code, said)
	}
}
