package sidecar

import (
	"context"
	"strings"
	"sync"

	"rankcache"
)

// maxTrend is how many ranks of boards that are over are kept, some 10 MB.
const maxTrend = 100_000

// RanksOf returns the ranks of the members on the board of q, in one call to Redis at most;
// 0: the member is not on it. It is for the board of a period before: over tells that the
// board does not change any more. Then ranks that Redis gave are kept for the next call. q's
// bounds are not looked at, and the read does not make the board hot. Dense ranks need a
// whole local board, as in [Reader.WholePage].
func (r *Reader) RanksOf(ctx context.Context, q *Query, over bool, mode rankcache.RankMode, members []string) (map[string]int, error) {
	key, ranks := trendKey{q.Board, q.Order, mode}, make(map[string]int, len(members))
	missing := r.trends.look(key, members, ranks)
	if len(missing) == 0 {
		return ranks, nil
	}
	var at place
	unbounded := Query{Board: q.Board, Room: q.Room, Order: q.Order}
	if err := r.find(&unbounded, false, &at); err != nil {
		return nil, err
	}
	s, err := r.ranksIn(ctx, &unbounded, &at, mode, missing)
	if err != nil {
		return nil, err
	}
	found := make(map[string]int, len(missing))
	for i, row := range s.Rows {
		if found[missing[i]] = row.Rank; row.Rank > 0 && mode != rankcache.Ordinal {
			found[missing[i]] = s.Ahead[i].Rank(mode, row.Rank-1)
		}
		ranks[missing[i]] = found[missing[i]]
	}
	if over && s.Source == SourceRedis { // a local copy may be behind still
		r.trends.keep(key, found)
	}
	return ranks, nil
}

// ranksIn returns the standings of members, whose number nothing limits.
func (r *Reader) ranksIn(ctx context.Context, q *Query, at *place, mode rankcache.RankMode, members []string) (Standings, error) {
	if mode == rankcache.Ordinal {
		return r.standings(ctx, q, at, nil, members)
	}
	return r.rankedStandings(ctx, q, at, mode, members)
}

type trendKey struct {
	board rankcache.BoardID
	order rankcache.Direction
	mode  rankcache.RankMode
}

// trends keeps ranks on boards that are over.
type trends struct {
	mu     sync.RWMutex
	boards map[trendKey]map[string]int
	n      int // ranks that are kept
}

// look adds the ranks that are kept to ranks, and returns the other members.
func (t *trends) look(key trendKey, members []string, ranks map[string]int) (missing []string) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	kept := t.boards[key]
	for _, m := range members {
		if rank, ok := kept[m]; ok {
			ranks[m] = rank
		} else {
			missing = append(missing, m)
		}
	}
	return missing
}

// keep takes ranks. Where there are too many, those of some other boards go.
func (t *trends) keep(key trendKey, ranks map[string]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other, kept := range t.boards {
		if t.n+len(ranks) <= maxTrend {
			break
		}
		delete(t.boards, other)
		t.n -= len(kept)
	}
	kept := t.boards[key]
	if kept == nil {
		if t.boards == nil {
			t.boards = make(map[trendKey]map[string]int)
		}
		key.board = rankcache.BoardID(strings.Clone(string(key.board)))
		kept = make(map[string]int, len(ranks))
		t.boards[key] = kept
	}
	t.n -= len(kept)
	for m, rank := range ranks {
		kept[strings.Clone(m)] = rank
	}
	t.n += len(kept)
}
