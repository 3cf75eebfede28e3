package sidecar

import (
	"strings"
	"sync"

	"rankcache"
)

// maxTrend is how many ranks of boards that are over are kept, some 10 MB.
const maxTrend = 100_000

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
