package testkit

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// handle is what the tests need of a shared server, started here or elsewhere.
type handle struct {
	addr   string
	fake   bool          // kfake instead of a real broker
	output func() string // nil when we can't know
	close  func() error  // nil when it isn't ours
	why    error         // why it is a fake
}

// sharedServer is a server that the first test to ask starts and all tests of the binary use. A start that failed fails
// every test that asks.
type sharedServer struct {
	env   string // names the address of one that runs already
	start func() (handle, error)

	once sync.Once
	handle
	err error

	watched sync.Map // tests that will show the output, should they fail
}

// get returns the server.
func (s *sharedServer) get(t testing.TB) (handle, error) {
	t.Helper()
	if !mainRuns.Load() {
		t.Fatal("the shared servers are ended by testkit.Main: add to this package's tests\n\tfunc TestMain(m *testing.M) { testkit.Main(m) }")
	}
	s.once.Do(func() { s.handle, s.err = s.find() })
	if s.err == nil && s.output != nil {
		s.watch(t)
	}
	return s.handle, s.err
}

// watch has the output shown, once, should t fail.
func (s *sharedServer) watch(t testing.TB) {
	if _, twice := s.watched.LoadOrStore(t, true); twice {
		return
	}
	t.Cleanup(func() { s.watched.Delete(t) })
	showOutput(t, s.env, s.output)
}

// find takes the server that the environment names, or starts one.
func (s *sharedServer) find() (handle, error) {
	addr := os.Getenv(s.env)
	if addr == "" {
		return s.start()
	}
	first, _, _ := strings.Cut(addr, ",")
	conn, err := net.DialTimeout("tcp", first, 5*time.Second)
	if err != nil {
		return handle{}, fmt.Errorf("the server named by %s does not answer; start it or unset the variable: %w", s.env, err)
	}
	return handle{addr: addr}, conn.Close()
}

// close ends the server if it is ours. No test may be running.
func (s *sharedServer) close() error {
	if s.handle.close == nil {
		return nil
	}
	return s.handle.close()
}

// showOutput logs what a server printed when the test has failed, at its end. It must be called after the cleanup that
// removes the output was registered.
func showOutput(t testing.TB, name string, output func() string) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output of the server (%s):\n%s", name, output())
		}
	})
}
