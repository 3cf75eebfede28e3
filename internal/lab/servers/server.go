package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	stopGrace  = 10 * time.Second // how long Stop waits after SIGTERM before it kills
	outputTail = 64 << 10         // bytes of output that Output returns at most
	outputFile = "output.log"
)

// ErrNotInstalled reports that a program or its files are not on this machine. The error that wraps it tells what to
// install.
var ErrNotInstalled = errors.New("not installed")

// errNotRunning answers a signal to a server that has been stopped or has ended by itself.
var errNotRunning = errors.New("not running")

// Server is a started child process that listens on a loopback address. Its methods may be called from several
// goroutines; those that start or end the process wait for each other.
type Server struct {
	spec

	mu   sync.Mutex // held while the process is being started or ended; guards proc
	proc *process   // the newest run, which may have ended
}

// spec is what stays the same over all runs of one server.
type spec struct {
	name         string // for messages: "redis-server", "kafka"
	argv         []string
	addr         string
	dir          string              // its files: data, settings, output
	ownDir       bool                // dir was made for this server and goes with it
	startTimeout time.Duration       // how long a start may take when the context sets no earlier deadline
	poll         time.Duration       // between two probes
	as           *syscall.Credential // the user that it runs as; nil: this one

	// probe returns nil once the server with this pid answers; it must tell it from a stranger on the same port.
	probe func(ctx context.Context, pid int) error
}

// Addr returns host:port, or the path of the socket. It stays the same over restarts.
func (s *Server) Addr() string { return s.addr }

// Dir returns the folder that holds the server's data, settings and output.
func (s *Server) Dir() string { return s.dir }

// Pid returns the process id of the newest run, which may have ended; 0 when that run could not be started.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.pid()
}

// Running reports whether the process is alive; a paused one is.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc != nil && s.proc.running()
}

// Stop asks the process to end with SIGTERM, paused or not, and kills it after ten seconds, which is an error. It keeps
// the data for a Restart. Stopping a server that is not running is no error.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop()
}

// Kill ends the process with SIGKILL, as a crash or the kernel's out-of-memory killer would, and waits until it is
// gone. It keeps the data for a Restart.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kill()
}

// Restart stops the process if it runs and starts it again with the same address and data. It returns once the new run
// answers; ctx bounds that wait.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.stop(), s.start(ctx))
}

// Pause freezes the process with SIGSTOP: connections stay open and are not answered. Resume or Stop ends it.
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT) }

// Close kills the process and removes its folder if it was a temporary one. The server can't be used afterwards.
func (s *Server) Close() error {
	err := s.Kill()
	if s.ownDir {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// Output returns the last 64 KiB that the server printed, over all its runs.
func (s *Server) Output() string {
	text, err := tail(filepath.Join(s.dir, outputFile), outputTail)
	if err != nil {
		return fmt.Sprintf("(output of %s can't be read: %v)", s.name, err)
	}
	return text
}

func (s *Server) signal(sig os.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || !s.proc.running() {
		return fmt.Errorf("signal %s: %w", s.name, errNotRunning)
	}
	return s.proc.cmd.Process.Signal(sig)
}

// launch starts the server for the first time. When that fails nothing of it is left.
func launch(ctx context.Context, sp spec) (*Server, error) {
	s := &Server{spec: sp}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start runs the command and waits until it answers. A run that does not is killed.
func (s *Server) start(ctx context.Context) error {
	out, err := os.OpenFile(filepath.Join(s.dir, outputFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	defer out.Close() // the child has its own copy
	if s.proc, err = startProcess(s.argv, s.dir, out, s.as); err != nil {
		return err
	}
	if err = s.waitReady(ctx); err != nil {
		return errors.Join(fmt.Errorf("%w; its last output:\n%s", err, s.Output()), s.kill())
	}
	return nil
}

// waitReady polls the probe until it succeeds, the process ends or the time is up.
func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.startTimeout)
	defer cancel()
	for {
		err := s.probe(ctx, s.proc.pid())
		if err == nil && s.proc.running() {
			return nil
		}
		select {
		case <-s.proc.done:
			return fmt.Errorf("%s ended while it was starting (%v)", s.name, s.proc.err)
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer on %s: %w (last answer: %v)", s.name, s.addr, ctx.Err(), err)
		case <-time.After(s.poll):
		}
	}
}

func (s *Server) stop() error {
	if s.proc == nil || !s.proc.running() {
		return nil
	}
	s.proc.cmd.Process.Signal(syscall.SIGTERM) // both fail only for a process that has just ended
	s.proc.cmd.Process.Signal(syscall.SIGCONT) // a paused process acts on no other signal
	select {
	case <-s.proc.done:
		return nil
	case <-time.After(stopGrace):
		return errors.Join(fmt.Errorf("%s did not end within %v of SIGTERM and was killed", s.name, stopGrace), s.kill())
	}
}

func (s *Server) kill() error {
	if s.proc == nil || !s.proc.running() {
		return nil
	}
	if err := s.proc.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", s.name, err)
	}
	<-s.proc.done
	return nil
}

// tail returns the last n bytes of a file.
func tail(path string, n int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, size-n), n))
	return string(text), err
}

// folder returns dir, made if need be, or a new temporary folder when dir is empty; own tells which.
func folder(dir, name string) (path string, own bool, err error) {
	if dir == "" {
		path, err = os.MkdirTemp("", "rankcache-"+name+"-")
		own = true
	} else if path, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	if err != nil {
		return "", false, fmt.Errorf("make the folder of %s: %w", name, err)
	}
	return path, own, nil
}

// Ports are looked for below the range from which Linux takes the local ends of outgoing connections (32768 and up). A
// port that the kernel hands out for ":0" is from that range, and between our look and the server's bind, or while a
// server is down for a restart, any client on the machine could get it.
const firstPort, lastPort = 15000, 32000

// FreeAddr returns a loopback host:port without a listener, which no outgoing connection gets while a server on it is
// down.
func FreeAddr() (string, error) {
	port, err := freePort()
	return loopback(port), err
}

// given has the ports that this process was given: their servers may need seconds until they listen.
var given sync.Map

// freePort returns a loopback TCP port without a listener, each once. Its random choice keeps test binaries that run
// side by side apart.
func freePort() (int, error) {
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if _, is := given.LoadOrStore(port, true); is {
			continue
		}
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("no free port found between %d and %d: check what listens there", firstPort, lastPort)
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
