package faults

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rankcache/wire"
)

// fault is one row of the suite.
type fault struct {
	name  string
	quick bool     // a part of every test run, not of the full size alone
	args  []string // further arguments of serve
	note  string   // shown in the table beside the name

	// prepare is called before anything is started.
	prepare func(w *env)
	// start brings sidecar and writer up; nil: both, and steady before the fault.
	start func(w *env)
	// inject causes the fault; hold, if any, waits for what it should bring
	// about; heal makes an end of it, nil if it passes by itself.
	inject, hold, heal func(w *env)
	// due is [Tally.Due].
	due func(*Question) bool
	// losesWrites: what Redis lost may be answered until the row has recovered.
	losesWrites bool
	// lasts is how many reads the fault lasts; 0: faultyReads.
	lasts int
}

// run runs the row and returns what it measured.
func (f *fault) run(t *testing.T, h *fixture) Result {
	w := newEnv(t, h, f)
	if f.prepare != nil {
		f.prepare(w)
	}
	if f.start != nil {
		w.oracle.Enter(Faulty)
		f.start(w)
	} else {
		w.startSteady()
	}
	w.oracle.Enter(Faulty)
	if f.inject != nil {
		f.inject(w)
	}
	lasts := f.lasts
	if lasts == 0 {
		lasts = faultyReads
	}
	w.waitReads(lasts)
	if f.hold != nil {
		f.hold(w)
	}
	w.oracle.Enter(Recovering)
	healed := time.Now()
	if f.heal != nil {
		f.heal(w)
	}
	w.recovered()
	took := time.Since(healed)
	w.oracle.Enter(Recovered)
	w.waitReads(steadyReads)
	return w.finish(took)
}

// startSteady brings everything up and waits until nothing happens any more.
func (w *env) startSteady() {
	w.Helper()
	w.startWriter()
	w.startSidecar()
	w.writes.Fill(w.Context(), 1)
	w.startLoad(2)
	w.steady()
}

// steady waits until nothing happens any more.
func (w *env) steady() {
	w.Helper()
	w.oracle.Enter(Steady)
	w.recovered()
	w.sidecar().WaitReady(settleWithin)
	w.waitReads(steadyReads)
}

// finish ends the load, compares everything and fails the test for what is wrong.
func (w *env) finish(took time.Duration) Result {
	w.Helper()
	w.stop()
	if w.relay != nil {
		w.relay.set(relay{window: 1})
	}
	v := w.oracle.Judge(true)
	f, t := w.fault, w.tally
	res := Result{Fault: f.name, Saw: [3]string{t.saw("local"), t.saw("hot"), t.saw("redis")}, Recovered: took, Note: strings.Trim(f.note+"; "+strings.Join(w.notes, "; "), "; "),
		Oldest: max(t.oldest["local"], t.oldest["hot"]), Answers: v.Judged, Wrong: len(v.Wrong), Lost: len(v.Lost),
		Failed: len(t.failed), Spared: t.spared}
	if !f.losesWrites && res.Lost > 0 {
		w.Errorf("%d answers were of writes that Redis had lost, but none was lost", res.Lost)
	}
	w.report("wrong answers", len(v.Wrong), func(i int) string { return v.Wrong[i].String() })
	w.report("failed reads", len(t.failed), func(i int) string { return t.failed[i] })
	if err := errors.Join(w.writes.Errs()...); err != nil {
		w.Error(err)
	}
	for _, b := range w.boards {
		if err := w.sameAsRedis(b); err != nil {
			w.Errorf("in the end: %v", err)
		}
	}
	w.Logf("%+v", res)
	return res
}

func (w *env) report(what string, n int, line func(int) string) {
	w.Helper()
	for i := range min(n, 5) {
		w.Errorf("%s: %s", what, line(i))
	}
	if n > 5 {
		w.Errorf("%s: %d in all", what, n)
	}
}

// sameAsRedis compares a board entry by entry: the sidecar's with Redis's and
// with the history. The load has ended.
func (w *env) sameAsRedis(b Board) error {
	rows, err := w.client().ZRevRangeWithScores(w.Context(), string(b.ID), 0, -1).Result()
	if err != nil {
		return err
	}
	data, err := w.client().HGetAll(w.Context(), wire.DefaultNames().CompanionKey(b.ID, wire.Data)).Result()
	if err != nil {
		return err
	}
	want := make([]Row, len(rows))
	for i, r := range rows {
		want[i] = Row{Rank: i + 1, Member: r.Member.(string), Score: r.Score, Data: data[r.Member.(string)]}
	}
	w.wantSource(b)
	w.wantSum(b, want)
	for from := 0; from == 0 || from < len(want); from += 500 {
		_, got := w.ask(Question{Board: b.ID, Tier: b.Tier, Kind: KindTop, Start: from, Limit: 500})
		if got.Err != nil {
			return got.Err
		}
		if to := min(from+500, len(want)); !slices.Equal(got.Rows, want[from:to]) {
			return fmt.Errorf("%s: rows %d to %d are\n%+v\nRedis has\n%+v", b.ID, from+1, to, got.Rows, want[from:to])
		}
	}
	if v := w.oracle.Judge(true); len(v.Wrong) > 0 {
		return fmt.Errorf("the last answer is not the result of the commands: %v", v.Wrong[0])
	}
	return nil
}
