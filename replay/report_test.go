package replay

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/rooms"
)

// TestBoardsToldAsOne: boards with one label have one series of each metric, and an
// update is counted once although its board changes its label.
func TestBoardsToldAsOne(t *testing.T) {
	feeds, own := &feeds{}, map[rankcache.BoardID]bool{}
	c := newCollector(feeds, func(id rankcache.BoardID) string {
		if own[id] {
			return string(id)
		}
		return "(others)"
	})
	reg := prometheus.NewRegistry()
	reg.MustRegister(c)
	followed := map[rankcache.BoardID]*feed{}
	for i := range 5 {
		id := rankcache.BoardID(fmt.Sprint("b", i))
		followed[id] = newFeed(id, rooms.Log{Topic: "update_cache_" + string(id)}, &fakeBoard{have: rankcache.Progress{Members: 10 * i}}, new(atomic.Int64), newMetrics(), time.Now())
	}
	feeds.replace(followed)
	apply := func(each int) {
		for _, f := range followed {
			f.replica.in.counts.add(rankcache.ApplyResult{Applied: each})
		}
	}
	applied := func(when string, want map[string]float64) {
		t.Helper()
		got := gathered(t, reg, "rankcache_replay_updates_total", "applied")
		for label, n := range want {
			if got[label] != n {
				t.Errorf("%s: %s has %v updates, want %v", when, label, got[label], n)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	apply(100)
	applied("all as one", map[string]float64{"(others)": 500})
	own["b4"] = true
	apply(10)
	applied("one by itself", map[string]float64{"(others)": 540, "b4": 10})
	delete(own, "b4")
	apply(1)
	applied("all as one again", map[string]float64{"(others)": 545})

	followed["b1"].status.set(rankcache.StateGivenUp, "", time.Now()) // has members
	followed["b0"].status.set(rankcache.StateGivenUp, "", time.Now()) // a room that has not begun
	for name, want := range map[string]map[string]float64{
		"rankcache_replay_members":         {"(others)": 0 + 10 + 20 + 30 + 40},
		"rankcache_replay_given_up_boards": {"": 1},
	} {
		if got := gathered(t, reg, name); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := gathered(t, reg, "rankcache_replay_board_state", "given-up"); got["(others)"] != 2 {
		t.Errorf("%v given up, want 2", got)
	}
	if n, err := testutil.GatherAndCount(reg); err != nil || n != 3+2+1+1+1 { // updates, states, members, given up, lost; no lag, as Redis was never read
		t.Errorf("%d series, %v", n, err)
	}
}

// gathered returns the values of a metric by board, those with all labels.
func gathered(t *testing.T, reg *prometheus.Registry, name string, labels ...string) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			board, has := "", 0
			for _, l := range m.Label {
				switch {
				case l.GetName() == "board":
					board = l.GetValue()
				case len(labels) > 0 && l.GetValue() == labels[0]:
					has++
				}
			}
			if f.GetName() == name && has == len(labels) {
				values[board] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return values
}
