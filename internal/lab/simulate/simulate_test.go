package simulate

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"rankcache/internal/cli"
	"rankcache/internal/plan"
	"rankcache/keeper"
	"rankcache/replay"
)

func question(pods, keepers int) plan.Question {
	return plan.Question{Pods: pods, Members: slices.Repeat([]int{2000}, 100), IDBytes: 10, Updates: 500, History: time.Hour, Keepers: keepers,
		StatesEvery: keeper.DefaultEvery, AuditRows: replay.DefaultAuditRows, SnapshotEvery: 30 * time.Second}
}

func runOf(t *testing.T, name string, q plan.Question) row {
	t.Helper()
	i := slices.IndexFunc(scenarios, func(c scenario) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("no scenario %q", name)
	}
	return scenarios[i].run(q, 1250e6, 1)
}

// The sidecars' own rules give, at rest, what plan computes, but for their own looks at each board, the first of which is five minutes after the start.
func TestSteadyStateIsThatOfPlan(t *testing.T) {
	for _, keepers := range []int{0, 1} {
		q := question(200, keepers)
		got, want := runOf(t, "steady", q), planned(q)
		if math.Abs(got.Commands/want.Commands-1) > 0.08 || math.Abs(got.Before/want.Before-1) > 0.15 {
			t.Errorf("%d keepers: %.0f commands/s and %.4f cores, plan has %.0f and %.4f", keepers, got.Commands, got.Before, want.Commands, want.Before)
		}
		if got.Failed != 0 || got.Open != 0 {
			t.Errorf("%d keepers: %+v", keepers, got)
		}
	}
}

// When no keeper is left the sidecars do not all ask at once, and never what they ask without one.
func TestKeepersDeathIsNoStampede(t *testing.T) {
	without := runOf(t, "steady", question(200, 0))
	dies := runOf(t, "the keeper dies, none is left", question(200, 1))
	if dies.Failed != 0 || float64(dies.PeakCommands) > 0.5*without.Commands || dies.Peak > without.Before {
		t.Errorf("at its peak %d commands/s and %.3f cores; without a keeper %.0f and %.3f", dies.PeakCommands, dies.Peak, without.Commands, without.Before)
	}
	if float64(dies.PeakCommands) < 2*dies.Commands {
		t.Errorf("%d commands/s at the peak, %.0f before: do the sidecars look after themselves?", dies.PeakCommands, dies.Commands)
	}
	if over := runOf(t, "the keeper dies, another takes over", question(200, 1)); float64(over.PeakCommands) > 1.2*over.Commands {
		t.Errorf("another keeper takes over: %d commands/s at the peak, %.0f before", over.PeakCommands, over.Commands)
	}
}

// Boards that lost changes are loaded again, and others are not.
func TestLossIsLoadedAgain(t *testing.T) {
	q := question(40, 1)
	kept, lost := runOf(t, "Redis fails over", q), runOf(t, "Redis fails over and loses 0.1 s", q)
	if kept.Open != 0 || lost.Open < failsOver.Seconds() {
		t.Errorf("open after %v s, with a loss %v", kept.Open, lost.Open)
	}
	if lost.Peak < 2*kept.Peak {
		t.Errorf("%.3f cores at the peak, %.3f without a loss", lost.Peak, kept.Peak)
	}
}

// Pods that start with snapshots are open sooner, and the same seed gives the same figures.
func TestStarts(t *testing.T) {
	q := question(100, 1)
	log, shared := runOf(t, "all start, from the log", q), runOf(t, "all start, from snapshots", q)
	if shared.Open <= 0 || log.Open < 5*shared.Open {
		t.Errorf("open after %v s from the log, %v s from snapshots", log.Open, shared.Open)
	}
	if again := runOf(t, "all start, from snapshots", q); again != shared {
		t.Errorf("%+v, the first time %+v", again, shared)
	}
}

func TestRefuses(t *testing.T) {
	var out bytes.Buffer
	for _, args := range [][]string{{"--pods", "39"}, {"--boards", "0"}, {"--network", "0"}, {"--updates", "-1"}} {
		if err := cli.Run(t.Context(), NewCommand(), args, &out, &out); cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%v: %v", args, err)
		}
	}
}
