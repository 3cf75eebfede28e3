package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// finalizer fails as often as it is told to.
type finalizer struct {
	fails int // calls of Final that fail
	tried []rankcache.BoardID
}

var errLags = errors.New("the ledger lags")

func (f *finalizer) Final(_ context.Context, b rankcache.BoardID) ([]byte, error) {
	f.tried = append(f.tried, b)
	if f.fails--; f.fails >= 0 {
		return nil, errLags
	}
	return []byte("final of " + b), nil
}

func finalFixture(t *testing.T, made *finalizer) *fixture {
	t.Helper()
	return newFixture(t, testkit.Kfake(t).Addr(), nil, func(o *Options) { o.Finalizer = made })
}

func TestFinalIsTriedUntilItIsMade(t *testing.T) {
	made := &finalizer{fails: 1}
	f := finalFixture(t, made)
	b, other := f.board(t, "paid", time.Now().Add(-48*time.Hour), wire.LifeOpen), f.board(t, "day", time.Now().Add(-48*time.Hour), wire.LifeOpen)
	if err := f.closeBoards(t.Context()); !errors.Is(err, errLags) {
		t.Errorf("first attempt: %v", err)
	}
	f.look(t) // too early for another
	if life := f.meta(t, b).Life; life != wire.LifeClosed || len(made.tried) != 1 || !slices.Equal(f.indexed(t), []string{string(b)}) {
		t.Errorf("life %d, finals %q, in the index %q", life, made.tried, f.indexed(t))
	}
	f.ahead = finalEvery
	f.look(t)
	if a, b := f.meta(t, b).Life, f.meta(t, other).Life; a != wire.LifeFinal || b != wire.LifeClosed || !slices.Equal(f.indexed(t), []string{string(made.tried[0])}) {
		t.Errorf("lives %d %d, in the index %q", a, b, f.indexed(t))
	}
	f.ahead += secondLook
	f.look(t)
	if n := len(f.indexed(t)); n != 0 {
		t.Errorf("%d in the index after the second look", n)
	}
	r := testkit.Records(t, f.broker, f.opts.Names.Finals, 1)[0]
	if string(r.Key) != string(b) || string(r.Value) != "final of "+string(b) {
		t.Errorf("published %s: %s", r.Key, r.Value)
	}
}

// The keys of a board without final are kept on, all together.
func TestBoardWithoutFinalIsKept(t *testing.T) {
	f := finalFixture(t, &finalizer{fails: 100})
	b := f.board(t, "paid", time.Now().Add(-48*time.Hour), wire.LifeOpen)
	meta, n := f.meta(t, b), f.opts.Names
	keys := []string{n.BoardKey(b), n.OrdersKey(b, 0, 0), n.OrdersKey(b, 1, 3), n.CompanionKey(b, wire.Scores)}
	for _, key := range keys {
		must(t, f.redis.Set(t.Context(), key, "", time.Hour).Err())
	}
	keep := f.tiers.file.Class("paid").Keep // 1 h
	left := func() (all []time.Duration) {
		for _, key := range append(keys, n.MetaKey(b)) {
			all = append(all, f.redis.PTTL(t.Context(), key).Val().Round(10*time.Minute))
		}
		return slices.Compact(all)
	}
	for _, c := range []struct{ expires, want time.Duration }{{50 * time.Minute, keep}, {20 * time.Minute, f.ahead + keep + 12*time.Hour}} {
		meta.Expires = uint64(time.Now().Add(c.expires).UnixMilli())
		must(t, f.redis.Set(t.Context(), n.MetaKey(b), wire.AppendMeta(nil, &meta), time.Hour).Err())
		if c.expires < keep/2 {
			f.ahead = 12 * time.Hour
		}
		if err := f.closeBoards(t.Context()); !errors.Is(err, errLags) {
			t.Fatal(err)
		}
		if got := left(); !slices.Equal(got, []time.Duration{c.want}) {
			t.Errorf("expires in %v: kept for %v, want %v", c.expires, got, c.want)
		}
	}
	if got := f.meta(t, b); got.Expires != uint64(f.redis.PExpireTime(t.Context(), n.MetaKey(b)).Val().Milliseconds()) || got.End != meta.End || got.Buckets != meta.Buckets {
		t.Errorf("meta %+v", got)
	}
	if !strings.Contains(f.log.String(), "is postponed") {
		t.Error("the log does not tell")
	}
}
