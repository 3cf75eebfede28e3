package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"rankcache"
)

func TestLagWatch(t *testing.T) {
	type poll struct {
		seq, before, after, highest uint64
		drained, gone               bool
		fault                       string
	}
	for name, polls := range map[string][]poll{
		"keeps up":             {{seq: 5, before: 5, after: 5}, {seq: 9, before: 5, after: 9}, {seq: 9, before: 9, after: 9}},
		"behind, but coming":   {{seq: 9, after: 1}, {seq: 20, before: 1, after: 10, highest: 10}, {seq: 30, before: 10, after: 19, highest: 19}},
		"behind, Kafka away":   {{seq: 9, after: 1}, {seq: 20, after: 1}, {seq: 30, after: 1}, {seq: 40, after: 1}},
		"hole stays":           {{seq: 9, after: 1, highest: 9}, {seq: 20, before: 1, after: 1, highest: 20}, {seq: 30, before: 1, after: 1, highest: 30, drained: true, fault: kindHole}},
		"a leader is away":     {{seq: 9, after: 1, highest: 9}, {seq: 20, before: 1, after: 1, highest: 20}, {seq: 30, before: 1, after: 1, highest: 30}},
		"log has nothing more": {{seq: 9, after: 1}, {seq: 9, before: 1, after: 1}, {seq: 9, before: 1, after: 1, drained: true, fault: kindHole}},
		"ahead by lag":         {{seq: 4, before: 3, after: 6}},
		"Redis lost its last":  {{seq: 5, before: 5, after: 5}, {seq: 4, before: 5, after: 5, fault: kindAhead}},
		"total gone":           {{seq: 5, before: 5, after: 5}, {gone: true, before: 5, after: 5, fault: kindGone}},
	} {
		w := lagWatch{patience: maxLag}
		begun := time.Now()
		for i, l := range polls {
			requested := begun.Add(time.Duration(i) * maxLag / 2)
			before := rankcache.Progress{Contiguous: l.before, Highest: l.before}
			after := rankcache.Progress{Contiguous: l.after, Highest: max(l.after, l.highest)}
			r := reading{State: rankcache.State{Run: 1, Seq: l.seq}, requested: requested}
			if l.gone {
				r.State = rankcache.State{}
			}
			why := w.check(TotalSeq, r, before, after, func(time.Time, time.Duration) bool { return l.drained })
			if got := kindOf(why); got != l.fault {
				t.Errorf("%s, poll %d: %+v, want %q", name, i, why, l.fault)
			}
		}
	}
}

func kindOf(f *fault) string {
	if f == nil {
		return ""
	}
	return f.kind
}

// Without a total, a board that stays empty in Redis is gone.
func TestLagWatchWithoutTotal(t *testing.T) {
	var w lagWatch
	begun := time.Now()
	here := rankcache.Progress{OrderIDs: 5, Members: 3}
	for i, c := range []struct {
		members int
		fault   string
	}{{3, ""}, {0, ""}, {3, ""}, {0, ""}, {0, ""}, {0, kindGone}} {
		r := reading{members: c.members, requested: begun.Add(time.Duration(i) * maxLag / 2)}
		if got := kindOf(w.check(TotalNone, r, here, here, nil)); got != c.fault {
			t.Errorf("poll %d: %q, want %q", i, got, c.fault)
		}
	}
}

// Where Redis is too slow for all sidecars and no keeper is there, the warning names one.
func TestSlowTotalsNameAKeeper(t *testing.T) {
	for err, want := range map[error]bool{fmt.Errorf("stamps: %w", context.DeadlineExceeded): true, errors.New("connection refused"): false} {
		var lines bytes.Buffer
		r := totalsReader{learner: learner{keeper: NewPace[map[*feed]probe](rand.Float64), metrics: newMetrics(), log: slog.New(slog.NewTextHandler(&lines, nil))}}
		if r.failed(err, nil); strings.Contains(lines.String(), "rankcache keep") != want {
			t.Errorf("%v: %s", err, &lines)
		}
	}
}
