package replay

import (
	"time"

	"rankcache"
	"rankcache/rooms"
)

// What is here of a board whose period has ended, and that lingers: a closed board never changes again, so a copy that
// equals it needs no look at Redis and takes no update; and one that is named for the first time then comes
// from Redis alone, as its log has hardly anything more.

// closes reports whether nothing new arrives for the board any more, so that it is not worth reading its log.
func closes(log rooms.Log, total TotalSource, now time.Time) bool {
	return total == TotalSeq && !log.Last.IsZero() && now.After(log.Last)
}

// settled reports whether the board is open, and equal to a closed one.
func (r *replica) settled() bool {
	return r.readable.Load() && r.board.Life() >= rankcache.LifeClosed
}

// rise has readers see the life that Redis has, if the board has the state that it had there.
func (r *replica) rise(t reading, epoch int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.epoch == epoch && r.readable.Load() && t.life > r.board.Life() && t.HasSum && r.board.State() == t.State {
		r.board.SetLife(t.life)
		r.board.Publish()
	}
}

// rests marks a settled board as current, and returns false for any other and for one whose final is to come: these
// are looked at.
func (f *feed) rests(now time.Time) bool {
	if !f.replica.settled() || !f.replica.publishCurrent(now) {
		return false
	}
	return !f.log.Final || f.replica.board.Life() == rankcache.LifeFinal
}
