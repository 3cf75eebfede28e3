package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
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
