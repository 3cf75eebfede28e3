package bench

import (
	"context"
	"encoding/json"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/wangjia184/sortedset"
)

// sortedsetTarget is a board in memory as a first version is written:
// wangjia184/sortedset under an RWMutex, encoding/json for every request, and
// net/http.
type sortedsetTarget struct {
	mu  sync.RWMutex
	set *sortedset.SortedSet
}

func newSortedsetTarget(_ context.Context, o *targetOptions) (target, error) {
	t := &sortedsetTarget{set: sortedset.New()}
	for member, score := range benchScores(o.members) {
		// SCORE is an integer; the bits of a double that is not negative order
		// as the double does.
		t.set.AddOrUpdate(member, sortedset.SCORE(math.Float64bits(score)), nil)
	}
	return t, nil
}

func (t *sortedsetTarget) serve(ctx context.Context, ln net.Listener) error {
	return serveStandard(ctx, ln, func(w http.ResponseWriter, r *http.Request) {
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil {
			http.Error(w, "limit", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(t.top(limit)) // fails only if the caller has gone
	})
}

// top returns the first limit rows.
func (t *sortedsetTarget) top(limit int) plainPage {
	page := plainPage{Board: string(benchBoardID), Source: "local", Entries: make([]plainRow, 0, limit)}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for i, node := range t.set.GetByRankRange(-1, -limit, false) {
		page.Entries = append(page.Entries, plainRow{i + 1, node.Key(), math.Float64frombits(uint64(node.Score()))})
	}
	return page
}
