package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// named has the environment name all servers, so that none is started.
func named(t *testing.T) {
	for _, m := range newFleet() {
		t.Setenv(m.env, "127.0.0.1:1")
	}
}

func TestTheExitCodeIsTheCommands(t *testing.T) {
	named(t)
	for script, want := range map[string]int{"exit 0": 0, "exit 3": 3, "kill -9 $$": 128 + 9} {
		if code, err := run([]string{"sh", "-c", script}); code != want || err != nil {
			t.Errorf("%s: got %d, %v, want %d", script, code, err, want)
		}
	}
}

func TestACommandThatIsNotThere(t *testing.T) {
	named(t)
	if code, err := run([]string{filepath.Join(t.TempDir(), "nothing")}); code != exitStart || err == nil {
		t.Errorf("got %d, %v", code, err)
	}
}

func TestSignalsReachTheCommand(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	signals := make(chan os.Signal, 1)
	go func() {
		for _, err := os.Stat(ready); err != nil; _, err = os.Stat(ready) {
			time.Sleep(time.Millisecond)
		}
		signals <- syscall.SIGTERM
	}()
	script := "trap 'exit 7' TERM; touch " + ready + "; while :; do sleep 0.01; done"
	if code, err := runCommand([]string{"sh", "-c", script}, nil, signals); code != 7 || err != nil {
		t.Errorf("got %d, %v, want 7", code, err)
	}
}

func TestServersRunAsLongAsTheCommand(t *testing.T) {
	testkit.Redis(t) // skips where a server is missing
	testkit.RealKafka(t)
	testkit.Database(t, "postgres")
	t.Setenv(testkit.EnvMariaDB, "127.0.0.1:1")
	for _, env := range []string{testkit.EnvRedis, testkit.EnvKafka, testkit.EnvPostgres} {
		t.Setenv(env, "")
	}
	out := filepath.Join(t.TempDir(), "out")
	code, err := run([]string{"sh", "-c", "echo $" + testkit.EnvRedis + " $" + testkit.EnvKafka + " $" + testkit.EnvPostgres + " >" + out + "; exit 5"})
	if code != 5 || err != nil {
		t.Fatalf("got %d, %v, want the command's 5", code, err)
	}
	text, _ := os.ReadFile(out)
	addrs := strings.Fields(string(text))
	if len(addrs) != 3 {
		t.Fatalf("the command got %q, want three addresses", text)
	}
	for _, a := range addrs {
		if conn, err := net.Dial("tcp", a); err == nil {
			conn.Close()
			t.Errorf("%s still answers", a)
		}
	}
}

func TestAMissingServerIsLeftOutUnlessItIsRequired(t *testing.T) {
	named(t)
	t.Setenv(testkit.EnvKafka, "")
	t.Setenv(servers.EnvKafkaLibs, t.TempDir())
	t.Setenv(testkit.EnvRequireReal, "")
	if code, err := run([]string{"sh", "-c", "test -z $" + testkit.EnvKafka}); code != 0 || err != nil {
		t.Errorf("got %d, %v", code, err)
	}
	t.Setenv(testkit.EnvRequireReal, "1")
	if code, err := run([]string{"true"}); code != exitStart || err == nil || !strings.Contains(err.Error(), "scripts/setup.sh") {
		t.Errorf("got %d, %v, want %d and what to do", code, err, exitStart)
	}
}
