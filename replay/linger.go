package replay

import (
	"fmt"
	"time"

	"rankcache"
	"rankcache/rooms"
)

// A board whose period has ended lingers: a closed one never changes, so an equal copy needs no look at Redis and takes
// no update; one named for the first time comes from Redis alone, as its log has hardly anything.

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

// lookAgain takes a look at a settled board: if Redis has closed another state after a failover, that counts.
func (f *feed) lookAgain(t reading, epoch int) {
	own := f.replica.board.State()
	if f.replica.late(t.State) != nil {
		return
	}
	if t.life >= rankcache.LifeClosed && t.HasSum && (t.Seq != own.Seq || t.Sum != own.Sum) {
		f.replica.report(epoch, fault{kind: kindSum, reason: fmt.Sprintf("it was closed at update %d, and is closed at %d now, in another state", own.Seq, t.Seq)})
		return
	}
	f.replica.follow(t, epoch)
	f.replica.rise(t, epoch)
}

// rests marks a settled board as current; false for others, and where a final is to come: these are looked at.
func (f *feed) rests(now time.Time) bool {
	if !f.replica.settled() || !f.replica.publishCurrent(now) {
		return false
	}
	return !f.log.Final || f.replica.board.Life() == rankcache.LifeFinal
}
