package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rankcache/internal/lab/load"
	"rankcache/internal/lab/servers"
)

// startTarget starts this program again as one target.
func (s *benchServers) startTarget(name, kind string, args ...string) (*benchServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(s.ctx, self, append([]string{"bench", "target", kind, "--target-socket", s.socket(name)}, args...)...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2") // Go's own choice in a container that is limited to one core
	cmd.Stderr = s.bench.progress
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		return nil, err
	}
	end := func() error { return errors.Join(in.Close(), cmd.Wait()) }
	answers := bufio.NewReader(out)
	var ready targetReady
	line, err := answers.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("it did not report that it is ready: %w", err), end())
	}
	fmt.Fprintf(s.bench.progress, "  %s is ready with %d MiB of live heap\n", name, ready.HeapMB)
	pids := []int{cmd.Process.Pid}
	server := &benchServer{tcp: ready.TCP, unix: s.socket(name), pids: pids, own: pids, close: end}
	server.order = func(line string) error { return order(in, answers, line) }
	return server, nil
}

// order has a target obey one line.
func order(in io.Writer, answers *bufio.Reader, line string) error {
	if _, err := fmt.Fprintln(in, line); err != nil {
		return err
	}
	answer, err := answers.ReadString('\n')
	if err == nil && answer != "ok\n" {
		err = fmt.Errorf("the target answers %q", answer)
	}
	return err
}

// nginxConfig is nginx as Debian sets it up, with one worker, without a log, and
// with connections that never end. Below /cached/ it also keeps the files open,
// which is rarely set and is its fastest.
const nginxConfig = `daemon off;
%s
worker_processes 1;
pid %[2]s/nginx.pid;
error_log stderr warn;
events { worker_connections 4096; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  tcp_nodelay on;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  default_type application/json;
  client_body_temp_path %[2]s/body;
  proxy_temp_path %[2]s/proxy;
  fastcgi_temp_path %[2]s/fastcgi;
  uwsgi_temp_path %[2]s/uwsgi;
  scgi_temp_path %[2]s/scgi;
  server {
    listen 127.0.0.1:%[3]d;
    listen unix:%[2]s/nginx.sock;
    root %[4]s;
    location /cached/ {
      alias %[4]s/;
      open_file_cache max=100 inactive=1h;
      open_file_cache_valid 1h;
    }
  }
}
`

// startNginx starts an nginx of its own that serves the files of root.
func startNginx(ctx context.Context, dir, root string, progress io.Writer) (*benchServer, error) {
	bin, err := exec.LookPath("nginx")
	if err != nil {
		return nil, fmt.Errorf("nginx: %w: install it (Debian's package nginx-light) or put it in PATH", servers.ErrNotInstalled)
	}
	port, err := loopbackPort()
	if err != nil {
		return nil, err
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // its worker must be able to read our folder
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, nginxConfig, user, dir, port, root), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, bin, "-c", file, "-p", dir, "-e", "stderr")
	cmd.Stderr = progress
	cmd.SysProcAttr = endWithUs()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end := func() error { return endNginx(cmd) }
	s := &benchServer{tcp: fmt.Sprintf("127.0.0.1:%d", port), unix: filepath.Join(dir, "nginx.sock"), close: end}
	if s.pids, err = awaitNginx(ctx, cmd.Process.Pid, s.target("unix")); err != nil {
		return nil, errors.Join(err, end())
	}
	s.own = s.pids
	return s, nil
}

// awaitNginx waits until it answers and returns its processes: the master, and
// the worker that does the work.
func awaitNginx(ctx context.Context, master int, t load.Target) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		q := get("/top50")
		_, _, err := load.Ask(t, &q)
		workers := childrenOf(master)
		if err == nil && len(workers) > 0 {
			return append(workers, master), nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("nginx does not answer: %w", errors.Join(ctx.Err(), err))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// loopbackPort returns a port that is free now.
func loopbackPort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return ln.Addr().(*net.TCPAddr).Port, ln.Close()
}

func childrenOf(pid int) (pids []int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) // none while it starts
	for _, field := range bytes.Fields(text) {
		if child, err := strconv.Atoi(string(field)); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}

func endNginx(cmd *exec.Cmd) error {
	_ = cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
	err := cmd.Wait()
	if err != nil && strings.Contains(err.Error(), "signal: killed") { // the run was interrupted
		return nil
	}
	return err
}
