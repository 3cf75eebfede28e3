package sidecar

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"rankcache"
)

const (
	maxTrend  = 100_000         // how many ranks of former boards are kept, some 10 MB
	trendTime = 2 * time.Second // how long ranks are kept of a board that is not known to be closed
)

type trendKey struct {
	board rankcache.BoardID
	order rankcache.Direction
	mode  rankcache.RankMode
}

type formerRanks struct {
	of    map[string]int
	until time.Time // when they are asked for again; zero: never, as the board is closed
}

func (f *formerRanks) kept(now time.Time) bool {
	return f != nil && (f.until.IsZero() || now.Before(f.until))
}

// trends keeps ranks on boards of the period before.
type trends struct {
	mu     sync.RWMutex
	boards map[trendKey]*formerRanks
	n      int // ranks that are kept
}

// FormerRanks returns the ranks of q's members on the board of a period before, 0: not on it, by one call to Redis at
// most. until is when they may have changed, zero: never, as the board is closed. Till then Redis's answer is kept. The
// map is the caller's.
func (r *Reader) FormerRanks(ctx context.Context, q *rankcache.Query, now time.Time) (ranks map[string]int, until time.Time, err error) {
	if q.Mode == rankcache.Approx { // a trend between two of those would tell little
		exact := *q
		exact.Mode = rankcache.Ordinal
		q = &exact
	}
	return r.trends.ranks(ctx, r, q, now)
}

func (t *trends) ranks(ctx context.Context, r rankcache.Reader, q *rankcache.Query, now time.Time) (ranks map[string]int, until time.Time, err error) {
	key, ranks := trendKey{q.Board, q.Order, q.Mode}, make(map[string]int, len(q.Members))
	until, missing := t.look(key, q.Members, now, ranks)
	if len(missing) == 0 {
		return ranks, until, nil
	}
	var qs []rankcache.Query
	for some := range slices.Chunk(missing, rankcache.MaxTop) {
		part := *q
		part.Members = some
		qs = append(qs, part)
	}
	as := make([]rankcache.Answer, len(qs))
	r.Read(ctx, qs, as)
	found := make(map[string]int, len(missing))
	for i := range as {
		if err := addRanks(found, q, &as[i]); err != nil {
			return nil, until, err
		}
	}
	maps.Copy(ranks, found)
	var foundUntil time.Time
	if as[0].Life < rankcache.LifeClosed {
		foundUntil = now.Add(trendTime)
	}
	if !as[0].Source.IsCopy() {
		t.keep(key, found, foundUntil, now)
	}
	if until.IsZero() { // what was kept, if anything, is for ever
		until = foundUntil
	}
	return ranks, until, nil
}

func addRanks(ranks map[string]int, q *rankcache.Query, a *rankcache.Answer) error {
	if a.Err != nil {
		return a.Err
	}
	for i := range a.Own {
		own := &a.Own[i]
		if own.Err != nil {
			return own.Err
		}
		if ranks[own.Member] = own.Rank; own.Rank > 0 {
			ranks[own.Member] = own.Ahead.Rank(q.Mode, own.Rank-1)
		}
	}
	return nil
}

// look adds the ranks that are kept to ranks, and returns until when they are and the other members.
func (t *trends) look(key trendKey, members []string, now time.Time, ranks map[string]int) (until time.Time, missing []string) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	former := t.boards[key]
	if !former.kept(now) {
		return until, members
	}
	for _, m := range members {
		if rank, ok := former.of[m]; ok {
			until, ranks[m] = former.until, rank
		} else {
			missing = append(missing, m)
		}
	}
	return until, missing
}

// keep takes ranks, for ever if the board is closed. Where there are too many, some other boards' go.
func (t *trends) keep(key trendKey, ranks map[string]int, until, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if former := t.boards[key]; former != nil && (!former.kept(now) || former.until.IsZero() != until.IsZero()) {
		t.drop(key)
	}
	for other := range t.boards {
		if t.n+len(ranks) <= maxTrend {
			break
		}
		t.drop(other)
	}
	former := t.boards[key]
	if former == nil {
		if t.boards == nil {
			t.boards = make(map[trendKey]*formerRanks)
		}
		key.board = rankcache.BoardID(strings.Clone(string(key.board)))
		former = &formerRanks{make(map[string]int, len(ranks)), until}
		t.boards[key] = former
	}
	t.n -= len(former.of)
	for m, rank := range ranks {
		former.of[strings.Clone(m)] = rank
	}
	t.n += len(former.of)
}

func (t *trends) drop(key trendKey) {
	t.n -= len(t.boards[key].of)
	delete(t.boards, key)
}
