package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"rankcache/internal/lab/load"
	"rankcache/internal/lab/servers"
)

// nginxConfig is nginx as Debian sets it up, with one worker, without a log, and
// with connections that never end. Below /cached/ it also keeps the files open,
// which is rarely set and is its fastest. /top it asks the plain service for, once a second.
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
  proxy_cache_path %[2]s/cache keys_zone=tops:1m;
  server {
    listen 127.0.0.1:%[3]d;
    listen unix:%[2]s/nginx.sock;
    root %[4]s;
    location /cached/ {
      alias %[4]s/;
      open_file_cache max=100 inactive=1h;
      open_file_cache_valid 1h;
    }
    location = /top {
      proxy_pass http://unix:%[2]s/plain.sock:;
      proxy_cache tops;
      proxy_cache_valid 200 1s;
      proxy_cache_lock on;
      proxy_cache_use_stale updating;
    }
  }
}
`

// varnishConfig keeps what the plain service answers for a second.
const varnishConfig = `vcl 4.1;
backend default { .path = "%s/plain.sock"; }
sub vcl_backend_response {
  set beresp.ttl = 1s;
  set beresp.grace = 10s;
}
`

// startNginx starts an nginx of its own.
func (s *benchServers) startNginx() (*benchServer, error) {
	port, err := loopbackPort()
	if err != nil {
		return nil, err
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // its worker must be able to read our folder
	}
	file := filepath.Join(s.dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, nginxConfig, user, s.dir, port, s.folder("static")), 0o600); err != nil {
		return nil, err
	}
	return s.startProgram("nginx", "nginx-light", "/top50", port, "-c", file, "-p", s.dir, "-e", "stderr")
}

func (s *benchServers) startVarnish() (*benchServer, error) {
	port, err := loopbackPort()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.dir, "varnish.vcl")
	if err := os.WriteFile(file, fmt.Appendf(nil, varnishConfig, s.dir), 0o600); err != nil {
		return nil, err
	}
	return s.startProgram("varnishd", "varnish", "/top?limit=50", port, "-F", "-j", "none", "-n", s.folder("varnish"), "-f", file, "-s", "malloc,16m",
		"-a", fmt.Sprintf("127.0.0.1:%d", port), "-a", s.socket("varnishd")+",mode=600")
}

// startCache returns a program that keeps what the plain service answers, which costs CPU as well.
func (s *benchServers) startCache(name string) (*benchServer, error) {
	plain, err := s.get("plain")
	if plain == nil || err != nil {
		return nil, err
	}
	if name == "varnish" {
		cache, err := s.startVarnish()
		if err == nil {
			cache.pids = append(cache.pids, plain.pids...)
		}
		return cache, err
	}
	nginx, err := s.get("nginx")
	if nginx == nil || err != nil {
		return nil, err
	}
	return &benchServer{tcp: nginx.tcp, unix: nginx.unix, pids: append(append([]int{}, nginx.pids...), plain.pids...), close: func() error { return nil }}, nil
}

// startProgram starts a program of a Debian package that answers path on a port and on its socket.
func (s *benchServers) startProgram(name, pack, path string, port int, args ...string) (*benchServer, error) {
	bin, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: install it (Debian's package %s) or put it in PATH", name, servers.ErrNotInstalled, pack)
	}
	cmd := exec.CommandContext(s.ctx, bin, args...)
	cmd.Stderr = s.bench.progress
	cmd.SysProcAttr = endWithUs()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end := func() error { return endProgram(cmd) }
	server := &benchServer{tcp: fmt.Sprintf("127.0.0.1:%d", port), unix: s.socket(name), close: end}
	if server.pids, err = awaitProgram(s.ctx, cmd.Process.Pid, path, server.target("unix")); err != nil {
		return nil, errors.Join(fmt.Errorf("%s does not answer: %w", name, err), end())
	}
	server.own = server.pids
	return server, nil
}

// awaitProgram waits until it answers and returns its processes: the master, and
// the worker that does the work.
func awaitProgram(ctx context.Context, master int, path string, t load.Target) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		q := get(path)
		_, _, err := load.Ask(t, &q)
		workers := slices.DeleteFunc(childrenOf(master), isCacheLoader)
		if err == nil && len(workers) > 0 {
			return append(workers, master), nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// isCacheLoader reports whether a process is one of nginx's that ends after a minute.
func isCacheLoader(pid int) bool {
	title, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Contains(string(title), "cache loader")
}

func endProgram(cmd *exec.Cmd) error {
	_ = cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
	err := cmd.Wait()
	if err != nil && strings.Contains(err.Error(), "signal: killed") { // the run was interrupted
		return nil
	}
	return err
}
