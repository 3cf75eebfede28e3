package serve

import (
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/plan"
	"rankcache/internal/testkit"
	"rankcache/localboard"
	"rankcache/replay/admission"
	"rankcache/wire"
)

// TestEstimateCoversWhatBoardsTake keeps the figures of admission's estimate true:
// it covers real boards, and not by so much that a budget is wasted.
func TestEstimateCoversWhatBoardsTake(t *testing.T) {
	sizes := []int{0, 1, 100, 1000, 10_000, 57_000}
	if testkit.Full() {
		sizes = append(sizes, 120_000)
	}
	for _, members := range sizes {
		for _, idLen := range []int{8, 20, 64, rankcache.MaxMemberLen} {
			took := int64(takenBy(members, idLen))
			reckoned := admission.Estimate(admission.Size{Members: members, IDBytes: idLen})
			if reckoned < took {
				t.Errorf("%d members with ids of %d bytes take %d bytes, reckoned are %d", members, idLen, took, reckoned)
			}
			if members > 50_000 && reckoned > took*3/2 {
				t.Errorf("%d members with ids of %d bytes take %d bytes, reckoned are %d: much too many", members, idLen, took, reckoned)
			}
		}
	}
}

// takenBy returns the most that a board holds when it is opened and updated.
func takenBy(members, idLen int) (most int) {
	b := localboard.New("b")
	seq := uint64(0)
	update := func(i int) wire.Update {
		seq++
		return wire.Update{Board: "b", Member: fmt.Sprintf("%0*d", idLen, i), Op: wire.OpSet, Score: float64(seq % 1000), Seq: seq}
	}
	all := make([]wire.Update, members)
	for i := range all {
		all[i] = update(i)
	}
	b.Apply(all)
	b.Publish()
	for i := range min(members, 5000) {
		b.Apply([]wire.Update{update(i * 7919 % members)})
		if i%250 == 0 {
			most = max(most, b.Bytes())
			b.Publish()
		}
	}
	return max(most, b.Bytes())
}

func TestMemoryBudget(t *testing.T) {
	limits := memoryLimits{Limit: 1000 << 20}
	for text, want := range map[string]int64{
		"60%": 600 << 20, "0": 0, "0%": 0, "100%": 1000 << 20, "12.5%": 125 << 20,
		"300MiB": 300 << 20, "300Mi": 300 << 20, "1GB": 1e9, "1048576": 1 << 20, "300B": 300,
	} {
		if got, err := limits.budget(text); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "-1", "-1%", "101%", "NaN%", "lots", "60 percent", "1e30GB", "300", "60"} {
		if got, err := limits.budget(text); err == nil || cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), "--memory-budget") {
			t.Errorf("%q: %d, %v, want a usage error", text, got, err)
		}
	}
}

// TestPlanGivesTheLimitThatServeNeeds: with the limit of a plan all boards are admitted,
// and not with a little less.
func TestPlanGivesTheLimitThatServeNeeds(t *testing.T) {
	for _, members := range [][]int{{57_000, 210_000}, {2_000_000}, slices.Repeat([]int{20_000}, 100), {1000}} {
		var need, fill int64
		for _, n := range members {
			size := admission.Size{Members: n, IDBytes: 10}
			need, fill = need+admission.Estimate(size), max(fill, admission.Fill(size))
		}
		for _, profiles := range []int{0, 128} {
			lowest := plan.Make(plan.Question{Members: members, IDBytes: 10, ProfileMiB: profiles, Requests: 1}).PodMemoryMiB * (1 << 20)
			for _, c := range []struct {
				limit float64
				fits  bool
			}{{lowest + 1<<20, true}, {lowest - 1<<20, false}} {
				l := memoryLimits{Limit: int64(c.limit), Source: limitCgroup}
				asked, err := l.budget(defaultMemoryBudget)
				if err != nil {
					t.Fatal(err)
				}
				share := newMemoryShare(l, asked, int64(profiles)<<20, nil, nil)
				share.Outside = 55 << 20
				if got := share.expected(); got >= need+fill != c.fits {
					t.Errorf("%d boards in %.0f MiB of at least %.0f: %d bytes for %d", len(members), c.limit/(1<<20), lowest/(1<<20), got, need+fill)
				}
			}
		}
	}
}

// TestTheExpectedMemoryOutsideOfGo is what a plan reckons with.
func TestTheExpectedMemoryOutsideOfGo(t *testing.T) {
	limit := int64(1 << 30)
	if testkit.Race {
		limit = math.MaxInt64 // the detector's shadow memory counts, and it is 5 to 10 times Go's
	}
	if got := outsideOfGo(); runtime.GOOS == "linux" && (got < 1<<20 || got > limit) {
		t.Errorf("%d bytes outside of Go", got)
	}
	more := newMemoryShare(memoryLimits{}, 0, 0, map[string]string{"queued.max.messages.kbytes": "65536"}, nil)
	if less := newMemoryShare(memoryLimits{}, 0, 0, nil, nil); more.Outside-less.Outside < 3*(60<<20)-(8<<20) {
		t.Errorf("outside of Go are %d bytes with a large queue, %d with ours", more.Outside, less.Outside)
	}
}

// TestGarbageTakesTheRoomThatThePodHas: with a limit the collector runs seldom, without one, and
// with GOGC in the environment, as Go has it.
func TestGarbageTakesTheRoomThatThePodHas(t *testing.T) {
	usual, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetGCPercent(usual); debug.SetMemoryLimit(limit) })
	pod := memoryLimits{Limit: 1 << 40, Source: limitCgroup} // far: the limit itself changes nothing
	for _, c := range []struct {
		name, gogc string
		limits     memoryLimits
		want       int
	}{
		{"no limit", "", memoryLimits{Limit: 1 << 40}, 100},
		{"the environment's percentage", "100", pod, 100},
		{"a pod's limit", "", pod, garbagePercent},
	} {
		t.Setenv("GOGC", c.gogc)
		t.Setenv("GOMEMLIMIT", "")
		newMemoryShare(c.limits, 0, 0, nil, slog.New(slog.DiscardHandler)).budget()
		got := debug.SetGCPercent(100)
		if got != c.want {
			t.Errorf("%s: %d %% garbage, want %d", c.name, got, c.want)
		}
	}
}
