package app

import (
	"cmp"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rankcache"
	"rankcache/sidecar/adminapi"
)

// otherBoards is the label of boards without series of their own. No board has such an id.
const otherBoards = "(others)"

// shownBoards chooses the boards that have metric series of their own: a sidecar may hold
// thousands, and each has about ten series.
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

// choose takes the most interesting boards. Of boards that are alike, those that were
// chosen before stay.
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

// foldLog returns log with its lines about many boards folded.
func (s *Sidecar) foldLog(log *slog.Logger) *slog.Logger {
	folded := newFoldedLog(log.Handler())
	s.parts = append(s.parts, folded.tally)
	return slog.New(folded)
}

// localBoard is one board in local memory as /status shows it, open or not.
type localBoard struct {
	Board   rankcache.BoardID `json:"board"`
	Open    bool              `json:"open"`
	Members int               `json:"members"`
	Bytes   int               `json:"bytes"`  // heap that it takes
	Age     int64             `json:"age_ms"` // since it was last known to be current; -1: never was
}

// localTotals are all boards in local memory.
type localTotals struct {
	Boards  int   `json:"boards"`
	Members int   `json:"members"`
	Bytes   int   `json:"bytes"`
	Age     int64 `json:"oldest_ms"` // of the open ones; -1: none is known to have been current
}

// addLocalBoards adds the memory's boards to /status: those of the page, and all in sum.
func (s *Sidecar) addLocalBoards(status *adminapi.Status) {
	status.BoardSections = map[string]func(map[rankcache.BoardID]bool) any{
		"local_boards": func(shown map[rankcache.BoardID]bool) any {
			return slices.DeleteFunc(s.localBoards(), func(b localBoard) bool { return !shown[b.Board] })
		}}
	status.Sections["local"] = func() any { return sumLocal(s.localBoards()) }
}

func (s *Sidecar) localBoards() []localBoard {
	all := []localBoard{}
	for _, b := range s.boards.All() {
		row := localBoard{Board: b.ID(), Open: OpenBoards{s.boards}.IsOpen(b.ID()),
			Members: b.Progress().Members, Bytes: b.Bytes(), Age: -1}
		if at := b.CurrentAt(); !at.IsZero() {
			row.Age = max(time.Since(at).Milliseconds(), 0)
		}
		all = append(all, row)
	}
	return all
}

func sumLocal(all []localBoard) localTotals {
	sum := localTotals{Boards: len(all), Age: -1}
	for _, b := range all {
		sum.Members += b.Members
		sum.Bytes += b.Bytes
		if b.Open {
			sum.Age = max(sum.Age, b.Age)
		}
	}
	return sum
}

// maxRefused is how many refused boards /status lists.
const maxRefused = 20

// memoryStatus returns the part of /status about memory.
func (s *Sidecar) memoryStatus() memoryStatus {
	m := memoryStatus{memoryLimits: s.memory, Status: s.admission.Status()}
	m.RefusedBoards = len(m.Refused)
	m.Refused = m.Refused[:min(len(m.Refused), maxRefused)]
	return m
}
