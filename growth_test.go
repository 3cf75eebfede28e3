package rankcache_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rankcache/internal/testkit"
)

// growing are the packages with a TestGrowth.
var growing = []string{"./controller", "./internal/roomsync", "./localboard", "./replay", "./replay/admission", "./rooms", "./sidecar/live"}

// TestNothingGrowsAsASquare counts how often each block of code runs in the tests of growth, and what they allocate, at two sizes:
// with twice as many boards it is to be about twice as much.
func TestNothingGrowsAsASquare(t *testing.T) {
	testkit.FullOnly(t, "builds what is tested once more, with counters")
	const size, atMost = 500, 2.6 // a sort of twice as many takes 2.2 times as many steps
	for _, pkg := range growing {
		few, many := stepsOf(t, pkg, size), stepsOf(t, pkg, 2*size)
		grows := func(block string, n int) bool { return n > 20*size && float64(n) > atMost*float64(few[block]) }
		for again := 0; again < 2 && anyOf(many, grows); again++ { // goroutines that end early do less
			merge(few, stepsOf(t, pkg, size), func(a, b int) int { return max(a, b) })
			merge(many, stepsOf(t, pkg, 2*size), func(a, b int) int { return min(a, b) })
		}
		for block, n := range many {
			if grows(block, n) {
				t.Errorf("%s: %s: %d steps with %d, %d with %d", pkg, block, few[block], size, n, 2*size)
			}
		}
	}
}

func anyOf(steps map[string]int, is func(string, int) bool) bool {
	for block, n := range steps {
		if is(block, n) {
			return true
		}
	}
	return false
}

// merge has steps be the greater or the smaller of two counts.
func merge(steps, others map[string]int, which func(a, b int) int) {
	for block, n := range steps {
		steps[block] = which(n, others[block])
	}
}

var (
	blockLine = regexp.MustCompile(`(?m)^(\S+) \d+ (\d+)$`)
	bytesLine = regexp.MustCompile(`(allocated) (\d+) bytes`)
)

// stepsOf returns how often each block ran, and what was allocated.
func stepsOf(t *testing.T, pkg string, size int) map[string]int {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "steps")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-v", "-count=1", "-run", "^TestGrowth$", "-covermode=count",
		"-coverpkg=slices,"+strings.Join(growing, ","), "-coverprofile", profile, pkg)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", testkit.EnvGrowth, size))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", pkg, err, out)
	}
	blocks, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	steps := make(map[string]int)
	for _, found := range append(blockLine.FindAllSubmatch(blocks, -1), bytesLine.FindSubmatch(out)) {
		n, _ := strconv.Atoi(string(bytes.TrimSpace(found[2])))
		steps[string(found[1])] += n
	}
	if steps["allocated"] == 0 || len(steps) < 100 {
		t.Fatalf("%s: nothing was counted:\n%s", pkg, out)
	}
	return steps
}
