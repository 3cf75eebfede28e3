package profile

import (
	"sync/atomic"
	"time"
)

// flight is the one load of a member, for all pages that wait. A done one leaves loader.flights, or stays a while as a
// recent result if its value is not in the store: refused by the cache, or failed.
type flight struct {
	member  string
	key     uint64
	version uint32
	call    *call
	dropped bool // guarded by loader.mu: its value must not be kept

	// Set before the call is done, not changed afterwards.
	value    entry         // the zero entry when the load failed
	revision uint32        // of the member's group when value was stored
	expiry   time.Duration // of a recent result
	bytes    int           // of a recent result
}

// call is the flights that are loaded together, at most a batch.
type call struct {
	flights []*flight
	done    chan struct{} // closed when all of them are done
	// waitedSince is when the first page began to wait: later ones don't wait a whole deadline. loader.mu guards it.
	waitedSince time.Duration
	// background calls come after those of pages; queued ones are counted in the
	// queue; taken ones are with a worker. Guarded by loader.mu.
	background, queued, taken bool
}

func (k *call) isDone() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// queue holds the calls that no worker has taken yet. loader.mu guards all but ready.
type queue struct {
	pages, background []*call
	members           int           // waiting in both
	ready             chan struct{} // holds a token when there may be something to take
}

func newQueue() queue { return queue{ready: make(chan struct{}, 1)} }

// push queues a call, or moves one from the background to the pages.
func (q *queue) push(k *call) {
	list := &q.pages
	if k.background {
		list = &q.background
	}
	*list = append(*list, k)
	if !k.queued {
		k.queued = true
		q.members += len(k.flights)
	}
	q.wake()
}

// take returns as many calls as fit into one batch, those of pages first; none when the queue is empty.
func (q *queue) take(batch int) (calls []*call) {
	for _, list := range []*[]*call{&q.pages, &q.background} {
		for len(*list) > 0 {
			k := (*list)[0]
			if !k.taken && len(k.flights) > batch {
				q.wake() // another worker
				return calls
			}
			(*list)[0], *list = nil, (*list)[1:]
			if !k.taken {
				k.taken = true
				calls = append(calls, k)
				batch -= len(k.flights)
				q.members -= len(k.flights)
			}
		}
	}
	return calls
}

func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// groupBits gives 16,384 revision counters in 64 KiB, a core's cache. More groups would invalidate fewer pages.
const groupBits = 14

// revisions counts how often a profile was stored or dropped: in total, and per group of members. They outlive the
// entries: a member that was evicted and loaded again, or refused by the cache, has still changed.
type revisions struct {
	total  atomic.Uint64 // raised after the group
	groups [1 << groupBits]atomic.Uint32
}

func group(key uint64) uint32 { return uint32(key >> (64 - groupBits)) } // the shards of ristretto use the low bits

func (r *revisions) of(key uint64) uint32 { return r.groups[group(key)].Load() }

// bump is called after the store was changed.
func (r *revisions) bump(key uint64) {
	r.groups[group(key)].Add(1)
	r.total.Add(1)
}

// stamp records the revisions of a page's profiles while it is joined. A nil stamp records nothing.
type stamp struct {
	rows    []rowStamp
	checked atomic.Uint64 // the total revision plus one at which the rows were last found unchanged; 0: never
	expiry  time.Duration // when the first row is due for another look-up: expired, stale or missing
}

type rowStamp struct{ group, revision uint32 } // the group of a row's member, and the group's revision

const never time.Duration = 1<<63 - 1

func newStamp(rows int) *stamp { return &stamp{rows: make([]rowStamp, rows), expiry: never} }

// record sets the row's revision, which the caller reads before it looks the profile up. Read afterwards, a profile
// stored in between would be recorded with an older value, and the page would stay wrong until it expires.
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

// fresh reports whether joining the page again would give the same profiles and start no load.
//
// The total is read before the rows and recorded after them. A change in between, too late for the rows, raises the
// total above the one that was read, so the next call finds another total and checks the rows.
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
