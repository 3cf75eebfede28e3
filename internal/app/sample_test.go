package app

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sample is a running process of deploy/sample.
type sample struct {
	file, addr string
	cmd        *exec.Cmd
}

func startSample(t *testing.T, args ...string) *sample {
	t.Helper()
	s := &sample{file: filepath.Join(t.TempDir(), "sample")}
	if out, err := exec.Command("go", "build", "-o", s.file, "../../deploy/sample").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.cmd = exec.Command(s.file, append(args, "--listen", "127.0.0.1:0")...)
	stderr, err := s.cmd.StderrPipe()
	must(t, err)
	must(t, s.cmd.Start())
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	log := bufio.NewReader(stderr)
	line, err := log.ReadString('\n')
	found := regexp.MustCompile(`listen=(\S+)`).FindStringSubmatch(line)
	if err != nil || found == nil {
		t.Fatalf("the sample's log has no address: %q, %v", line, err)
	}
	go io.Copy(io.Discard, log)
	s.addr = found[1]
	return s
}

// preStop runs the hook that the manifest gives the sample.
func (s *sample) preStop(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(manifests + "/base/app.yaml")
	must(t, err)
	hook := regexp.MustCompile(`preStop:\s+exec:[^\n]*\s+command: \[/sample, (.*)\]`).FindSubmatch(text)
	if hook == nil {
		t.Fatal("the sample has no preStop hook")
	}
	if out, err := exec.Command(s.file, strings.Split(string(hook[1]), ", ")...).CombinedOutput(); err != nil {
		t.Fatalf("preStop %s: %v: %s", hook[1], err, out)
	}
}

func (s *sample) end(t *testing.T) {
	t.Helper()
	must(t, s.cmd.Process.Signal(syscall.SIGTERM))
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the sample ends with %v", err)
	}
}

// askOnce asks for the board on a connection of its own.
func askOnce(addr string) (int, string) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err.Error()
	}
	defer conn.Close()
	code, _, err := askOn(conn, bufio.NewReader(conn))
	return code, fmt.Sprint(err)
}

// askOn asks for the board and also returns whether the answer ends the connection.
func askOn(conn net.Conn, answers *bufio.Reader) (code int, last bool, err error) {
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, "GET /board.json HTTP/1.1\r\nHost: sample\r\n\r\n"); err != nil {
		return 0, false, err
	}
	resp, err := http.ReadResponse(answers, nil)
	if err != nil {
		return 0, false, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Close, err
}

// keepCallers starts callers that ask every 20 ms, each on one connection until an
// answer ends it. Anything else that ends it fails the test.
func keepCallers(t *testing.T, addr string, n int) *sync.WaitGroup {
	t.Helper()
	var all sync.WaitGroup
	for range n {
		conn, err := net.Dial("tcp", addr)
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		all.Go(func() {
			answers := bufio.NewReader(conn)
			for asked := 1; ; asked++ {
				code, last, err := askOn(conn, answers)
				if err != nil || code != http.StatusOK {
					t.Errorf("request %d on a kept connection: %d, %v", asked, code, err)
					return
				}
				if last {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	return &all
}
