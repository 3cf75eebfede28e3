package resp

import (
	"bufio"
	"io"
	"net"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// TestOtherClients runs unmodified clients: they connect, use pipelines, transactions, scripts,
// subscriptions and blocking pops, and connect again.
func TestOtherClients(t *testing.T) {
	t.Parallel()
	t.Run("redis-py", func(t *testing.T) {
		runClient(t, testkit.Fetched(t, "python/bin/python"), "testdata/clients/redis_py.py")
	})
	t.Run("ioredis", func(t *testing.T) {
		runClient(t, "env", "NODE_PATH="+testkit.Fetched(t, "node_modules"), "node", "testdata/clients/ioredis.js")
	})
	t.Run("Jedis", func(t *testing.T) {
		runClient(t, "java", "-cp", filepath.Join(testkit.Fetched(t, "libs"), "*"), "testdata/clients/Jedis.java")
	})
	t.Run("phpredis", func(t *testing.T) {
		if modules, _ := osexec.Command("php", "-m").Output(); !strings.Contains(string(modules), "\nredis\n") {
			t.Skip("NOT RUN: there is no php with phpredis (Debian's packages php-cli and php-redis), and nothing else needs it")
		}
		runClient(t, "php", "testdata/clients/phpredis.php")
	})
}

// runClient runs a program of testdata/clients. When it prints "close", all connections are
// closed, and a line is written to it.
func runClient(t *testing.T, command ...string) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	_, port, _ := net.SplitHostPort(e.addr)
	cmd := osexec.CommandContext(t.Context(), command[0], append(command[1:], port)...)
	stderr := &strings.Builder{}
	cmd.Stderr = stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if inErr != nil || outErr != nil {
		t.Fatal(inErr, outErr)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if last = lines.Text(); last != "close" {
			continue
		}
		e.closeAll()
		_, _ = io.WriteString(in, "\n")
	}
	if err := cmd.Wait(); err != nil || last != "done" {
		t.Errorf("%v after %q: %s", err, last, stderr)
	}
	if e.counted(zRevRange, sourceLocal) == 0 {
		t.Error("no read was answered here")
	}
}
