package rebuild

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// keep returns a function that takes the board in Redis back to what it is now, as a Redis that comes back from an older file.
func (f *fixture) keep(t *testing.T) (restore func()) {
	t.Helper()
	was := make(map[string]string)
	for _, key := range f.keys(t) {
		dump, err := f.redis.Dump(t.Context(), key).Result()
		must(t, err)
		was[key] = dump
	}
	return func() {
		must(t, f.redis.Del(t.Context(), f.keys(t)...).Err())
		for key, dump := range was {
			must(t, f.redis.Restore(t.Context(), key, 0, dump).Err())
		}
	}
}

// incrs gives increments of 1.
func (f *fixture) incrs(t *testing.T, id string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		f.give(t, fmt.Sprint(id, "-", i), fmt.Sprint("m", i%5), `"op":"incr","delta":1`)
	}
}

// wantForked checks that a rebuild is refused, with what forked where, and that the board is as it was.
func (f *fixture) wantForked(t *testing.T, r *Rebuilder, texts ...string) {
	t.Helper()
	scores, state := f.scores(t), f.state(t)
	_, err := r.Rebuild(t.Context(), f.board)
	c, err2 := r.Compare(t.Context(), f.board)
	must(t, err2)
	for _, text := range texts {
		if err == nil || c.Refused == nil || !strings.Contains(err.Error(), text) || !strings.Contains(c.Refused.Error(), text) {
			t.Errorf("want %q: %v; compared: %v", text, err, c.Refused)
		}
	}
	equal(t, "as it was", []any{f.scores(t), f.state(t)}, []any{scores, state})
}

func (f *fixture) addingBranches() *Rebuilder {
	adding := *f.Rebuilder
	adding.opts.AddBranches = true
	return &adding
}

// TestForkedLog: Redis came back from an older file, without a new run.
func TestForkedLog(t *testing.T) {
	t.Parallel()
	f := newLogged(t, single)
	t.Run("nothing was posted since", func(t *testing.T) { oldFile(t, f.logged(t, "plain", "old")) })
	t.Run("the lost history is longer", func(t *testing.T) { forked(t, f.logged(t, "plain", "fork"), 8) })
	t.Run("the lost history is shorter", func(t *testing.T) { forked(t, f.logged(t, "asc", "fork"), 40) })
	t.Run("lost orders were posted again", func(t *testing.T) { postedAgain(t, f.logged(t, "plain", "again")) })
	t.Run("three histories", func(t *testing.T) { threeBranches(t, f.logged(t, "plain", "three")) })
	t.Run("with a set", func(t *testing.T) { notAdded(t, f.logged(t, "plain", "set")) })
	t.Run("of ties", func(t *testing.T) { notAdded(t, f.logged(t, "ties", "fork")) })
	t.Run("compacted", func(t *testing.T) { compacted(t, f.logged(t, "plain", "compact")) })
	t.Run("the topic is behind", func(t *testing.T) { behindFork(t, f.logged(t, "plain", "behind")) })
}

func oldFile(t *testing.T, f *fixture) {
	f.incrs(t, "a", 0, 10)
	restore := f.keep(t)
	f.incrs(t, "a", 10, 30)
	want, before := f.scores(t), f.state(t)
	restore()
	_, err := f.Rebuild(t.Context(), f.board)
	must(t, err)
	f.wantRebuilt(t, want, before)
}

func forked(t *testing.T, f *fixture, since int) {
	f.incrs(t, "a", 0, 10)
	restore := f.keep(t)
	f.incrs(t, "a", 10, 30)
	restore()
	own := f.orders[:10:10]
	f.incrs(t, "b", 0, since)
	own = append(own, f.orders[30:]...)
	f.wantForked(t, f.Rebuilder, "up to change 30 (checksum", "20 changes from 11 on are lost", fmt.Sprintf("the latest up to change %d (checksum", 10+since), "--both")

	latest := f.scores(t)
	must(t, f.redis.Del(t.Context(), f.keys(t)...).Err())
	done, err := f.Rebuild(t.Context(), f.board)
	must(t, err)
	equal(t, "the latest history", []any{f.scores(t), done.Orders, strings.Contains(done.Forked, "20 changes from 11 on")}, []any{latest, len(own), true})
	all := f.orders
	f.orders = own
	f.wantRepeats(t)
	f.orders = all

	adding := f.addingBranches()
	c, err := adding.Compare(t.Context(), f.board)
	must(t, err)
	equal(t, "compared", []any{c.Refused, c.LedgerMembers}, []any{error(nil), 5})
	done, err = adding.Rebuild(t.Context(), f.board)
	must(t, err)
	sum := total(f.scores(t))
	equal(t, "points, order ids", []any{max(sum, -sum), done.Orders}, []any{float64(30 + since), 30 + since})
	f.wantRepeats(t)
	f.incrs(t, "after", 0, 5)
	if sum := total(f.scores(t)); max(sum, -sum) != float64(35+since) {
		t.Errorf("%v points", sum)
	}
}

// postedAgain: no order is lost any more, so there is nothing to refuse.
func postedAgain(t *testing.T, f *fixture) {
	f.incrs(t, "a", 0, 10)
	restore := f.keep(t)
	f.incrs(t, "a", 10, 20)
	restore()
	f.orders = f.orders[:10:10]
	f.incrs(t, "b", 0, 3)
	f.incrs(t, "a", 15, 20)
	f.incrs(t, "a", 10, 14)
	f.wantForked(t, f.Rebuilder, "of which 1 changes from 11 on are lost")
	f.incrs(t, "a", 14, 15)
	want, before := f.scores(t), f.state(t)
	done, err := f.Rebuild(t.Context(), f.board)
	must(t, err)
	f.wantRebuilt(t, want, before)
	equal(t, "forked", done.Forked, "")
}

func threeBranches(t *testing.T, f *fixture) {
	f.incrs(t, "a", 0, 10)
	first := f.keep(t)
	f.incrs(t, "a", 10, 30)
	first()
	f.incrs(t, "b", 0, 7)
	second := f.keep(t)
	f.incrs(t, "b", 7, 12)
	second()
	f.incrs(t, "c", 0, 3)
	f.wantForked(t, f.Rebuilder, "20 changes from 11 on", "5 changes from 18 on")
	first()
	f.incrs(t, "a", 10, 15) // repeats of a lost history, at their places
	f.incrs(t, "d", 0, 2)
	_, err := f.addingBranches().Rebuild(t.Context(), f.board)
	must(t, err)
	equal(t, "points", total(f.scores(t)), 30.+12+3+2)
	for i := range f.orders {
		if status, answer := f.post(f.orders[i].command); status != 200 || !strings.Contains(answer, "duplicate") {
			t.Errorf("%s: %d %s", f.orders[i].command, status, answer)
		}
	}
}

// notAdded: what is no increment is listed alone.
func notAdded(t *testing.T, f *fixture) {
	f.incrs(t, "a", 0, 10)
	restore := f.keep(t)
	f.incrs(t, "a", 10, 15)
	restore()
	f.incrs(t, "b", 0, 3)
	if f.class == "plain" {
		f.give(t, "set", "m1", `"op":"set","score":100`)
	}
	f.wantForked(t, f.addingBranches(), "only increments can be added up", "5 changes from 11 on", "(checksum")
}

// compacted: of a topic that lacks changes no history is added to another.
func compacted(t *testing.T, f *fixture) {
	f.incrs(t, "a", 0, 10)
	restore := f.keep(t)
	f.incrs(t, "a", 10, 15)
	restore()
	f.incrs(t, "b", 0, 3)
	w, err := f.plan(t.Context(), f.board, "")
	must(t, err)
	l, err := f.opts.Updates.fold(t.Context(), f.board, 0, true)
	must(t, err)
	defer l.close()
	w.log, w.opts.AddBranches = l, true
	must(t, w.prove())
	delete(l.runs.all()[0].changes, 4)
	if err := w.prove(); !errors.Is(err, errLogShort) || !strings.Contains(err.Error(), "a compacted topic") {
		t.Error(err)
	}
}

// behindFork: the topic does not have Redis's present history.
func behindFork(t *testing.T, f *fixture) {
	f.incrs(t, "a", 0, 10)
	restore := f.keep(t)
	f.incrs(t, "a", 10, 30)
	restore()
	w, err := f.plan(context.Background(), f.board, "")
	must(t, err)
	w.redis.Seq, w.redis.Sum = 12, w.redis.Sum^1
	w.log, err = f.opts.Updates.fold(t.Context(), f.board, 0, false)
	must(t, err)
	defer w.log.close()
	if err := w.stands(t.Context(), w.redis); !errors.Is(err, errLogShort) || !strings.Contains(err.Error(), "Redis has a history of the board") {
		t.Error(err)
	}
	// Redis has no checksum while a writer adds it up: its members are what it has.
	w.redis.Seq, w.redis.HasSum, w.redis.Sum = 10, false, 0
	must(t, w.stands(t.Context(), w.redis))
	must(t, f.redis.ZIncrBy(t.Context(), f.opts.Names.BoardKey(f.board), 1, "m1").Err())
	if err := w.stands(t.Context(), w.redis); !errors.Is(err, errLogShort) {
		t.Error(err)
	}
}
