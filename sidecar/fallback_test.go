package sidecar

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/internal/testkit/fixture"
)

var errAway = fmt.Errorf("%w: connection refused", rankcache.ErrUnavailable)

// withLedger returns a reader whose ledger has 30 members at seq 5.
func withLedger(env *testEnv) (r *Reader, ledger *fixture.Origin) {
	ledger = fixture.New().Origin
	ledger.N.Store(30)
	ledger.Seq.Store(5)
	cfg := env.config()
	cfg.Ledger = ledger
	r, err := NewReader(cfg, nil)
	if err != nil {
		panic(err)
	}
	return r, ledger
}

// kinds are all ways to read a board, which return what answered and its seq.
var kinds = func() map[string]func(*Reader, rankcache.Query) (rankcache.Source, uint64, time.Time, error) {
	all := make(map[string]func(*Reader, rankcache.Query) (rankcache.Source, uint64, time.Time, error))
	for name, kind := range map[string]rankcache.Query{
		"page": {Start: 1, Limit: 2}, "standings": {Members: []string{"m000001"}}, "ranked": {Mode: rankcache.Competition, Members: []string{"m000001"}},
		"around": {Members: []string{"m000001"}, Around: 3}, "whole": {Limit: 2, Members: []string{"m000001"}, Around: 3}, "batch": {Limit: 2},
	} {
		all[name] = func(r *Reader, q rankcache.Query) (rankcache.Source, uint64, time.Time, error) {
			q.Start, q.Limit, q.Members, q.Around, q.Mode = kind.Start, kind.Limit, kind.Members, kind.Around, kind.Mode
			qs := []rankcache.Query{q}
			if name == "batch" {
				qs = append(qs, q)
			}
			as := make([]rankcache.Answer, len(qs))
			r.Read(context.Background(), qs, as)
			a := &as[len(as)-1]
			return a.Source, a.Seq, a.CurrentAt, a.Err
		}
	}
	return all
}()

// TestLedgerAnswersWhileRedisIsAway: all kinds of reads; and where the ledger fails as well,
// the error is Redis's. Errors of a Redis that is there are not asked about elsewhere.
func TestLedgerAnswersWhileRedisIsAway(t *testing.T) {
	for name, read := range kinds {
		t.Run(name, func(t *testing.T) {
			env := newEnv()
			r, ledger := withLedger(env)
			if source, _, _, err := read(r, rankcache.Query{Board: "any"}); source != rankcache.SourceRedis || err != nil || ledger.Calls.Load() != 0 {
				t.Errorf("from %v, %v, %d calls of the ledger", source, err, ledger.Calls.Load())
			}
			env.Origin.FailWith(errAway)
			if source, seq, at, err := read(r, rankcache.Query{Board: "any"}); source != rankcache.SourceLedger || seq != 5 || err != nil || !at.Equal(fixture.Published) {
				t.Errorf("from %v at seq %d of %v, %v; want the ledger's 5 of %v", source, seq, at, err, fixture.Published)
			}
			ledger.FailWith(fmt.Errorf("%w: ledger: not_proved", rankcache.ErrUnavailable))
			if _, _, _, err := read(r, rankcache.Query{Board: "any"}); !errors.Is(err, errAway) {
				t.Errorf("%v, want Redis's error", err)
			}
			ledger.FailWith(nil)
			broken := errors.New("WRONGTYPE")
			env.Origin.FailWith(broken)
			if _, _, _, err := read(r, rankcache.Query{Board: "any"}); !errors.Is(err, broken) {
				t.Errorf("%v, want the error of a Redis that answers", err)
			}
		})
	}
}

// TestBoundsOnTheLedger: an answer of the ledger that is too old, or before what the caller
// has written, is no answer.
func TestBoundsOnTheLedger(t *testing.T) {
	env := newEnv()
	env.Origin.FailWith(errAway)
	r, _ := withLedger(env)
	for name, read := range kinds {
		for what, bound := range map[string]rankcache.Query{"age": {MaxAge: time.Minute}, "seq": {MinSeq: 6}, "another run": {MinState: rankcache.State{Run: 9, Seq: 1}}} {
			bound.Board = "any"
			if _, _, _, err := read(r, bound); !errors.Is(err, rankcache.ErrUnavailable) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if source, _, _, err := read(r, rankcache.Query{Board: "any", MinSeq: 5}); err != nil || source != rankcache.SourceLedger {
			t.Errorf("%s: from %v, %v", name, source, err)
		}
	}
}

// TestBatchAsksTheLedgerForWhatRedisLeaves: each board has its own answer.
func TestBatchAsksTheLedgerForWhatRedisLeaves(t *testing.T) {
	env := newEnv()
	r, ledger := withLedger(env)
	env.Origin.FailBoard("away", errAway)
	env.Origin.FailBoard("nowhere", errAway)
	ledger.FailBoard("nowhere", fmt.Errorf("%w: ledger: unknown_board", rankcache.ErrUnavailable))
	answers := make([]rankcache.Answer, 3)
	r.Read(context.Background(), []rankcache.Query{{Board: "any", Limit: 1}, {Board: "away", Limit: 1}, {Board: "nowhere", Limit: 1}}, answers)
	if a := answers[0]; a.Err != nil || a.Source != rankcache.SourceRedis {
		t.Errorf("any: from %v, %v", a.Source, a.Err)
	}
	if a := answers[1]; a.Err != nil || a.Source != rankcache.SourceLedger {
		t.Errorf("away: from %v, %v", a.Source, a.Err)
	}
	if a := answers[2]; !errors.Is(a.Err, errAway) {
		t.Errorf("nowhere: %v", a.Err)
	}
}

// TestRedisThatHangs: after a few readers have waited for Redis the ledger answers at once;
// one reader a second tries Redis, and when it answers again, so do all.
func TestRedisThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		env.limits = OriginLimits{Timeout: time.Second}
		hold := make(chan struct{})
		env.Origin.Hold = hold
		r, _ := withLedger(env)
		read := func() (rankcache.Source, time.Duration) {
			began := time.Now()
			source, _, _, err := kinds["page"](r, rankcache.Query{Board: "any"})
			if err != nil {
				t.Error(err)
			}
			return source, time.Since(began)
		}
		for range awayAfter {
			if source, took := read(); source != rankcache.SourceLedger || took != 500*time.Millisecond {
				t.Errorf("from %v after %v", source, took)
			}
		}
		slow, began := 0, time.Now()
		for range 30 {
			source, took := read()
			if took > 0 {
				slow++
			}
			if source != rankcache.SourceLedger {
				t.Errorf("from %v", source)
			}
			time.Sleep(100*time.Millisecond - took%(100*time.Millisecond))
		}
		if seconds := int(time.Since(began) / retryEvery); slow < seconds-1 || slow > seconds+1 {
			t.Errorf("%d of 30 readers have tried Redis in %d s, want one a second", slow, seconds)
		}
		close(hold)
		time.Sleep(2 * retryEvery)
		for i := range 3 {
			if source, took := read(); source != rankcache.SourceRedis || took != 0 {
				t.Errorf("read %d: from %v after %v, want Redis, which is back", i, source, took)
			}
		}
	})
}
