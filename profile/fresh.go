package profile

import (
	"sync/atomic"
	"time"
)

// stamp is what a kept page remembers of the profiles it was made from. It is
// filled while the page is joined; afterwards only checked changes.
type stamp struct {
	rows []seen
	// checked is the count of all changes for which the rows were last found
	// unchanged: while it stands, nobody need look at the rows.
	checked atomic.Uint64
	// until is when the first row has to be looked at again: it expires, or it
	// is stale or missing and worth another try.
	until time.Duration
}

// seen is one row: its group, and the group's count.
type seen struct{ group, count uint32 }

const never time.Duration = 1<<63 - 1

func newStamp(rows int) *stamp { return &stamp{rows: make([]seen, rows), until: never} }

// see notes the row's count. It comes before the row's lookup: were it read
// after, a profile stored in between would be noted with a value that is older,
// and the page would stay wrong until it expires.
func (s *stamp) see(row int, key uint64, count uint32) {
	if s != nil {
		s.rows[row] = seen{group(key), count}
	}
}

// again notes that some row has to be looked at again at t.
func (s *stamp) again(t time.Duration) {
	if s != nil {
		s.until = min(s.until, t)
	}
}

// fresh reports whether joining the page again would give the same profiles and
// start no load.
//
// The count of all changes is read before the rows and noted after them. A
// change that comes in between, too late for the rows, raises it after it was
// read, so the next call differs from what was noted and looks at the rows.
func (s *stamp) fresh(c *changes, now time.Duration) bool {
	if now >= s.until {
		return false
	}
	all := c.all.Load()
	if s.checked.Load() == all+1 { // 0: never checked
		return true
	}
	for i := range s.rows {
		if c.groups[s.rows[i].group%(1<<groupBits)].Load() != s.rows[i].count {
			return false
		}
	}
	s.checked.Store(all + 1)
	return true
}
