package profile

import (
	"sync/atomic"
	"time"
)

// groupBits is the size of the revision counters: 16,384 groups, 64 KiB, which
// stays in a core's cache. With more groups, changes of other members invalidate
// fewer pages.
const groupBits = 14

// revisions counts how often a profile was stored or dropped: in total, and per
// group of members. They outlive the entries: a member that was evicted and
// loaded again, or refused by the cache, has still changed.
type revisions struct {
	total  atomic.Uint64 // raised after the group
	groups [1 << groupBits]atomic.Uint32
}

func group(key uint64) uint32 { return uint32(key >> (64 - groupBits)) } // the shards of ristretto use the low bits

// of returns the revision of the key's group.
func (r *revisions) of(key uint64) uint32 { return r.groups[group(key)].Load() }

// bump is called after the store was changed.
func (r *revisions) bump(key uint64) {
	r.groups[group(key)].Add(1)
	r.total.Add(1)
}

// stamp records the revisions of the profiles of one page. It is filled while the
// page is joined; afterwards only checked changes. A nil stamp records nothing.
type stamp struct {
	rows []rowStamp
	// checked is one more than the total revision at which the rows were last found
	// unchanged, so that the rows need no check while the total is the same; 0: never.
	checked atomic.Uint64
	// expiry is when the first row is due for another lookup: its profile expires,
	// or is stale or missing and worth another load.
	expiry time.Duration
}

// rowStamp is the group of a row's member, and the group's revision.
type rowStamp struct{ group, revision uint32 }

const never time.Duration = 1<<63 - 1

func newStamp(rows int) *stamp { return &stamp{rows: make([]rowStamp, rows), expiry: never} }

// record sets the row's revision, which the caller reads before it looks the
// profile up. Read afterwards, a profile stored in between would be recorded with
// an older value, and the page would stay wrong until it expires.
func (s *stamp) record(row int, key uint64, revision uint32) {
	if s != nil {
		s.rows[row] = rowStamp{group(key), revision}
	}
}

// recheckAt makes the stamp expire at t or earlier.
func (s *stamp) recheckAt(t time.Duration) {
	if s != nil {
		s.expiry = min(s.expiry, t)
	}
}

// fresh reports whether joining the page again would give the same profiles and
// start no load.
//
// The total is read before the rows and recorded after them. A change in between,
// too late for the rows, raises the total above the one that was read, so the next
// call finds another total and checks the rows.
func (s *stamp) fresh(r *revisions, now time.Duration) bool {
	if now >= s.expiry {
		return false
	}
	total := r.total.Load()
	if s.checked.Load() == total+1 {
		return true
	}
	for i := range s.rows {
		if r.groups[s.rows[i].group%(1<<groupBits)].Load() != s.rows[i].revision {
			return false
		}
	}
	s.checked.Store(total + 1)
	return true
}
