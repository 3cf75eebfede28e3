package serve

import (
	"slices"
	"time"

	"rankcache"
	"rankcache/sidecar/adminapi"
)

// LocalBoard is one board in local memory as /status shows it, open or not.
type LocalBoard struct {
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
func (s adminPort) addLocalBoards(status *adminapi.Status) {
	status.BoardSections = map[string]func(map[rankcache.BoardID]bool) any{
		"local_boards": func(shown map[rankcache.BoardID]bool) any {
			return slices.DeleteFunc(s.localBoards(), func(b LocalBoard) bool { return !shown[b.Board] })
		}}
	status.Sections["local"] = func() any { return sumLocal(s.localBoards()) }
}

func (s adminPort) localBoards() []LocalBoard {
	all := []LocalBoard{}
	for _, b := range s.Local.All() {
		row := LocalBoard{Board: b.ID(), Open: OpenBoards{s.Local}.IsOpen(b.ID()),
			Members: b.Progress().Members, Bytes: b.Bytes(), Age: -1}
		if at := b.CurrentAt(); !at.IsZero() {
			row.Age = max(time.Since(at).Milliseconds(), 0)
		}
		all = append(all, row)
	}
	return all
}

func sumLocal(all []LocalBoard) localTotals {
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
func (s adminPort) memoryStatus() MemoryStatus {
	m := MemoryStatus{memoryLimits: s.memory.now(), Status: s.admission.Status()}
	m.RefusedBoards = len(m.Refused)
	m.Refused = m.Refused[:min(len(m.Refused), maxRefused)]
	return m
}
