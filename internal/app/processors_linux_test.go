package app

import (
	"cmp"
	"os"
	"os/exec"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

// TestOneProcessorIsTwoForGo: where a process may use one CPU, Go would let one goroutine run at a time.
func TestOneProcessorIsTwoForGo(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("taskset"); err != nil {
		t.Fatal("taskset (Debian's util-linux) is not in PATH: ", err)
	}
	for env, want := range map[string]string{"": `"gomaxprocs":2`, "1": `"gomaxprocs":1`} {
		cmd := exec.Command("taskset", "--cpu-list", "0", cmp.Or(os.Getenv(envBinary), os.Args[0]), "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0",
			"--health", "127.0.0.1:0", "--resp", "", "--redis", "redis://"+testkit.Redis(t), "--kafka", testkit.Kafka(t), "--log-format", "json")
		cmd.Env = append(os.Environ(), envRunMain+"=1", "GOMAXPROCS="+env)
		c := testkit.StartChild(t, cmd).WaitListening()
		testkit.Eventually(t, time.Minute, func() error { return contains(c.Log(), want) })
	}
}
