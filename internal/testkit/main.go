package testkit

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
)

// mainRuns tells that Main is there to end the shared servers.
var mainRuns atomic.Bool

// Main runs the tests of a binary, ends the servers that they shared and exits. Call it from TestMain.
func Main(m *testing.M) {
	mainRuns.Store(true)
	code := m.Run()
	for _, s := range []*sharedServer{&sharedRedis, &sharedKafka} {
		if err := s.close(); err != nil {
			fmt.Fprintln(os.Stderr, "testkit: end a shared server:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}
