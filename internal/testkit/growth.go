package testkit

import (
	"os"
	"runtime"
	"strconv"
	"testing"
)

// EnvGrowth is the environment variable with the size at which tests named TestGrowth run.
const EnvGrowth = "RANKCACHE_TEST_GROWTH"

// Growth returns how many boards, streams or pods a test of growth has, and has the test tell at its end how many bytes
// it allocated from now on.
func Growth(t testing.TB) int {
	n, err := strconv.Atoi(os.Getenv(EnvGrowth))
	if err != nil {
		return 20
	}
	before := allocated()
	t.Cleanup(func() { t.Logf("allocated %d bytes", allocated()-before) })
	return n
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
