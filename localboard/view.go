package localboard

import (
	"sync/atomic"

	"rankcache"
)

// view is a board at one moment, as readers see it. Its fields are never
// changed; the scores in its members' records are (see publish.go).
type view struct {
	members
	ranking
	head head
	top  *rankcache.Top

	// overwritten is set before the first score of this view's records is
	// overwritten by the next publication: the changes it makes, with the
	// scores that belong to this view.
	overwritten atomic.Pointer[[]change]
}

// change is a member's new score, to be published.
type change struct {
	handle    uint32
	key       uint64  // the member's sort key, taken while its id is in the cache
	old, next float64 // old is the score published before
}

func (v *view) stamp() rankcache.Stamp {
	return rankcache.Stamp{Seq: v.top.Seq, Members: v.top.Members, At: v.top.PublishedAt}
}

// lookup fills in the score of each row's member as the table has it, and leaves
// its handle + 1 as rank, for restore and rank. sure is as for look.
func (v *view) lookup(rows []rankcache.Standing, sure bool) {
	for i := range rows {
		r := &rows[i]
		r.Score, r.Rank = absent, 0
		if h, s := v.look(v.tag(r.Member), r.Member, sure); s != nil {
			r.Score, r.Rank = s.published(), int(h)+1
		}
	}
}

// restore gives rows that were overwritten their score in this view back.
func (v *view) restore(rows []rankcache.Standing, overwritten []change) {
	for i := range rows {
		r := &rows[i]
		if r.Rank == 0 {
			continue
		}
		n := int(v.at(uint32(r.Rank - 1)).change.Load())
		if n > 0 && n <= len(overwritten) { // more only if the reader has to begin again
			r.Score = overwritten[n-1].old
		}
	}
}

// rank turns the handles that lookup left into ranks. It returns false if one is
// another member's, which lookup took for it. The records that tell are fetched
// while the processor still waits for the order.
func (v *view) rank(rows []rankcache.Standing, order rankcache.Direction) bool {
	for i := range rows {
		r := &rows[i]
		if r.Rank == 0 {
			r.Score = 0
			continue
		}
		h := uint32(r.Rank - 1)
		v.rankOne(r, h, order)
		if v.at(h).name() != r.Member {
			return false
		}
	}
	return true
}

func (v *view) rankOne(r *rankcache.Standing, handle uint32, order rankcache.Direction) {
	if isAbsent(r.Score) {
		r.Score, r.Rank = 0, 0
		return
	}
	before := v.place(&v.members, newRow(r.Score, v.key(r.Member), handle))
	if r.Rank = before + 1; order == rankcache.Ascending {
		r.Rank = v.rows - before
	}
}
