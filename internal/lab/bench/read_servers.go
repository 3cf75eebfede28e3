package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/load"
	"rankcache/internal/lab/servers"
	"rankcache/wire"
)

// benchServers are the servers of one run, started when a row first needs them.
type benchServers struct {
	ctx     context.Context // of the run
	bench   *readBench
	dir     string // sockets, replies and nginx's files
	top     []rankcache.Entry
	started map[string]*benchServer // nil: not installed
	missing []string                // why rows are left out
	bodies  map[string][]byte       // written down, by path; see write
}

// benchServer is one running server.
type benchServer struct {
	tcp, unix string
	pids      []int                   // whose CPU time its answers cost
	own       []int                   // those of them that were started for it alone
	order     func(line string) error // nil: not a target; see target.go
	close     func() error
}

func newBenchServers(ctx context.Context, b *readBench) (*benchServers, error) {
	dir, err := os.MkdirTemp("", "rankcache-bench-")
	if err != nil {
		return nil, err
	}
	return &benchServers{ctx: ctx, bench: b, dir: dir, top: benchTop(benchScores(b.members), rankcache.MaxTop),
		started: make(map[string]*benchServer), bodies: make(map[string][]byte)}, nil
}

// get returns a server by its name in the rows, nil if it is not installed here.
func (s *benchServers) get(name string) (*benchServer, error) {
	if server, ok := s.started[name]; ok {
		return server, nil
	}
	server, err := s.start(name)
	if errors.Is(err, servers.ErrNotInstalled) {
		s.missing = append(s.missing, err.Error())
		fmt.Fprintf(s.bench.progress, "ROWS LEFT OUT: %v\n", err)
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	s.started[name] = server
	return server, nil
}

func (s *benchServers) start(name string) (*benchServer, error) {
	fmt.Fprintln(s.bench.progress, "starting", name)
	switch name {
	case "redis":
		return s.startRedis(name, "")
	case "valkey":
		program := cmp.Or(os.Getenv("VALKEY_SERVER"), "valkey-server")
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("valkey-server: %w: put it in PATH, or its path in VALKEY_SERVER", servers.ErrNotInstalled)
		}
		return s.startRedis(name, program)
	case "nginx proxy_cache", "varnish":
		return s.startCache(name)
	case "nginx":
		if err := s.write("/top50", "rankcache", top50Path); err != nil {
			return nil, err
		}
		return s.startNginx()
	case "fixed":
		return s.startFixed(name, "fixed", errors.Join(
			s.write("/top50", "rankcache", top50Path),
			s.write("/standing", "rankcache", memberPath+someMembers(s.bench.members)[0])))
	case "fixed profiles":
		return s.startFixed(name, "fixed", s.write("/profiles50", "busy", profilesPath))
	case "sortedset":
		return s.startTarget(name, name, s.size())
	case "updated": // apart from rankcache, whose pages stay as they were written down
		return s.startOverRedis(name, "rankcache", s.size())
	case "busy":
		return s.startOverRedis(name, "rankcache", s.size(), fmt.Sprint("--target-profiles=", s.bench.profiles))
	case "plain", "kept":
		server, err := s.startOverRedis(name, name)
		if server != nil {
			server.pids = append(server.pids, s.started["redis"].pids...)
		}
		return server, err
	}
	return s.startOverRedis(name, name, s.size())
}

func (s *benchServers) size() string { return fmt.Sprint("--target-members=", s.bench.members) }

// startOverRedis starts a target that reads the filled Redis.
func (s *benchServers) startOverRedis(name, kind string, args ...string) (*benchServer, error) {
	redis, err := s.get("redis")
	if err != nil {
		return nil, err
	}
	if redis == nil {
		return nil, fmt.Errorf("%s needs Redis: redis-server: %w", name, servers.ErrNotInstalled)
	}
	return s.startTarget(name, kind, append(args, "--target-redis", redis.tcp)...)
}

// startRedis starts a redis-server, or another program, that holds the board, twice.
func (s *benchServers) startRedis(name, program string) (*benchServer, error) {
	socket := s.socket(name)
	server, err := servers.StartRedis(s.ctx, servers.RedisOptions{Program: program, Args: []string{"--unixsocket", socket}})
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2})
	defer client.Close()
	scores := benchScores(s.bench.members)
	for _, board := range []rankcache.BoardID{benchBoardID, benchHotBoard} {
		if err := fill.NewBoardOf(board, scores, uint64(len(scores))).Redis(s.ctx, client, wire.DefaultNames(), 0); err != nil {
			return nil, errors.Join(err, server.Close())
		}
	}
	pids := []int{server.Pid()}
	return &benchServer{tcp: server.Addr(), unix: socket, pids: pids, own: pids, close: server.Close}, nil
}

func (s *benchServers) socket(name string) string { return filepath.Join(s.dir, name+".sock") }
func (s *benchServers) folder(name string) string { return filepath.Join(s.dir, name) }

// startFixed starts a target that answers with what was written down so far.
func (s *benchServers) startFixed(name, kind string, writeErr error) (*benchServer, error) {
	if writeErr != nil {
		return nil, writeErr
	}
	return s.startTarget(name, kind, "--target-replies", s.folder("replies"))
}

// write asks a rankcache for a page and keeps it under a path: the whole reply
// for the fixed body, its body for nginx.
func (s *benchServers) write(path, server, ask string) error {
	from, err := s.get(server)
	switch {
	case err != nil || s.bodies[path] != nil:
		return err
	case from == nil:
		return fmt.Errorf("%s is written down from rankcache over Redis: redis-server: %w", path, servers.ErrNotInstalled)
	}
	q := get(ask)
	resp, body, err := load.Ask(from.target("unix"), &q)
	if err != nil {
		return err
	}
	raw, err := httputil.DumpResponse(resp, true)
	if err != nil {
		return err
	}
	s.bodies[path] = body
	for folder, data := range map[string][]byte{s.folder("replies"): raw, s.folder("static"): body} {
		if err := errors.Join(os.MkdirAll(folder, 0o750), os.WriteFile(folder+path, data, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// target tells how to reach the server.
func (s *benchServer) target(transport string) load.Target {
	addr := s.tcp
	if transport == "unix" {
		addr = s.unix
	}
	return load.Target{Network: transport, Addr: addr}
}

// pin ties every server to one core.
func (s *benchServers) pin(core int) error {
	for _, server := range s.started {
		if server == nil {
			continue
		}
		for _, pid := range server.own {
			if err := load.Pin(pid, core); err != nil {
				return err
			}
		}
	}
	return nil
}

// close ends the servers and removes their files.
func (s *benchServers) close() {
	names := make([]string, 0, len(s.started))
	for name := range s.started {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if server := s.started[name]; server != nil {
			if err := server.close(); err != nil {
				fmt.Fprintf(s.bench.progress, "end %s: %v\n", name, err)
			}
		}
	}
	if err := os.RemoveAll(s.dir); err != nil {
		fmt.Fprintln(s.bench.progress, err)
	}
}
