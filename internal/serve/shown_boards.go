package serve

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rankcache"
)

const otherBoards = "(others)" // the label of boards without series of their own. No board has such an id.

// shownBoards chooses the boards with metric series of their own, about ten each, among thousands.
type shownBoards struct {
	most   int
	status func() []rankcache.BoardStatus
	chosen atomic.Pointer[map[rankcache.BoardID]bool] // never changes, is replaced
}

func newShownBoards(most int, status func() []rankcache.BoardStatus) *shownBoards {
	s := &shownBoards{most: most, status: status}
	s.chosen.Store(&map[rankcache.BoardID]bool{})
	return s
}

// choose takes the most interesting boards. Of boards that are alike, those that were chosen before stay.
func (s *shownBoards) choose() {
	all, before := s.status(), *s.chosen.Load()
	slices.SortFunc(all, func(a, b rankcache.BoardStatus) int {
		return cmp.Or(rankcache.CompareStatus(&a, &b), first(before[a.Board], before[b.Board]), cmp.Compare(a.Board, b.Board))
	})
	next := make(map[rankcache.BoardID]bool)
	for _, b := range all[:min(s.most, len(all))] {
		next[b.Board] = true
	}
	s.chosen.Store(&next)
}

// first orders true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// label returns the value of a board's label "board".
func (s *shownBoards) label(id rankcache.BoardID) string {
	if (*s.chosen.Load())[id] {
		return string(id)
	}
	return otherBoards
}

// gatherer chooses anew before each scrape, so that all metrics tell of the same boards.
func (s *shownBoards) gatherer(g prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		s.choose()
		return g.Gather()
	})
}
