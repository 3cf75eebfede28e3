package demo

import (
	"fmt"
	"math/rand/v2"

	"rankcache"
	"rankcache/internal/lab/fill"
	"rankcache/wire"
)

// The demo's synthetic evening: one room with most of the viewers and a few
// hundred with almost none.
const (
	demoStarUID    = "88"   // the super-hot room's host
	demoMembers    = 57_000 // members of its board
	demoHistory    = 4      // gifts in the log, per member
	demoSmallRooms = 300
	demoZipf       = 1.1 // skew of gifts over viewers: a few give most
)

// evening invents the gifts. It is not safe for concurrent use; each
// goroutine makes one of its own.
type evening struct {
	run     string // keeps this run's boards apart from those of earlier ones
	members int
	rng     *rand.Rand
	zipf    *rand.Zipf
}

func newEvening(run string, members int, seed uint64) *evening {
	rng := rand.New(rand.NewPCG(seed, 88))
	return &evening{run: run, members: members, rng: rng, zipf: rand.NewZipf(rng, demoZipf, 50, uint64(members-1))}
}

// starBoard is the board of the super-hot room, smallBoard that of a small one.
func (e *evening) starBoard() rankcache.BoardID {
	return rankcache.BoardID("demo_" + e.run + "_star")
}

func (e *evening) smallBoard(i int) rankcache.BoardID {
	return rankcache.BoardID(fmt.Sprintf("demo_%s_small_%d", e.run, i))
}

func (e *evening) blockedBoard() rankcache.BoardID {
	return rankcache.BoardID("demo_" + e.run + "_blocked")
}

// member returns the i-th giver's id. Ids are not in the order of generosity.
func (e *evening) member(i uint64) string {
	return fmt.Sprint(1_000_000 + i*7919%uint64(e.members)) // 7919 is a prime: no two share an id
}

// giver draws the next giver.
func (e *evening) giver() string { return e.member(e.zipf.Uint64()) }

// gift draws what it is worth: most are small, a few are rockets.
func (e *evening) gift() float64 {
	worth := [...]float64{1, 1, 1, 1, 5, 5, 10, 66, 520}
	return worth[e.rng.IntN(len(worth))]
}

// history returns the updates that made the star board what it is when the demo
// begins, in order, and that board.
func (e *evening) history() ([]wire.Update, *fill.Board) {
	updates := make([]wire.Update, demoHistory*e.members)
	board := fill.NewBoard(e.starBoard())
	for i := range updates {
		member := e.giver()
		if i < e.members {
			member = e.member(uint64(i)) // each member gives once
		}
		updates[i] = board.Incr(member, e.gift())
		updates[i].OrderID = fmt.Sprintf("history-%d", i)
	}
	return updates, board
}
