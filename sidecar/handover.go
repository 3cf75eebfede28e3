package sidecar

import (
	"time"

	"rankcache"
)

// keepJoined is how long profiles go from page to page before the cache is asked
// for them again: it is to learn that they are still in use.
const keepJoined = time.Second

// handover is what the page of one top leaves to that of the next: its profiles.
// A board that is written to has a hundred tops a second, with nearly always the
// same members. Looking 50 of them up in the cache, which is in no processor's
// cache, and copying from there took 100 of the 125 µs in which such a page was
// made (in a server under load), and with one core every request waited for it.
type handover struct {
	entries  []rankcache.Entry
	profiles [][]byte // of the entries, as they stand in the page
	fresh    func() bool
	asked    time.Time // when the cache was
}

// inherit returns the profiles of a page's rows: those of the page before, if it
// had the same members, otherwise from the cache.
func (s *DataServer) inherit(c *call, a *Answer) joined {
	if !c.args.profiles || a.handover == nil {
		return s.join(c, a.Entries)
	}
	if h, _ := a.handover.Load().(*handover); h != nil && time.Since(h.asked) < keepJoined {
		if j, ok := h.join(a.Entries); ok {
			if len(a.Entries) >= len(h.entries) { // a top 3 leaves the top 50 its profiles
				j.spots = make([]int, len(a.Entries))
			}
			return j
		}
	}
	j := s.join(c, a.Entries)
	j.spots = make([]int, len(a.Entries))
	return j
}

// join returns false if one of the rows is not here, or has changed.
func (h *handover) join(entries []rankcache.Entry) (joined, bool) {
	j := joined{profiles: make([][]byte, len(entries)), fresh: h.fresh, asked: h.asked}
	for i := range entries {
		at := h.find(entries[i].Member, i)
		if at < 0 {
			return joined{}, false
		}
		j.profiles[i] = h.profiles[at]
	}
	return j, h.fresh()
}

// find returns the row of member, -1 if it has none. It looks near row i first:
// from one top to the next hardly anybody goes far.
func (h *handover) find(member string, i int) int {
	for d := range max(i+1, len(h.entries)-i) {
		if up := i - d; up >= 0 && up < len(h.entries) && h.entries[up].Member == member {
			return up
		}
		if down := i + d; down < len(h.entries) && h.entries[down].Member == member {
			return down
		}
	}
	return -1
}

// handOver leaves the profiles of a page, unless some are still to come.
func handOver(a *Answer, j *joined, b *body) {
	if j.spots == nil || j.missing > 0 || j.fresh == nil {
		return
	}
	h := &handover{entries: a.Entries, profiles: j.profiles, fresh: j.fresh, asked: j.asked}
	for i, p := range h.profiles {
		if p != nil { // where it stands now: the page before is not to be kept
			from, to := j.spots[i], j.spots[i]+len(p)
			h.profiles[i] = b.data[from:to:to]
		}
	}
	a.handover.Store(h)
}
