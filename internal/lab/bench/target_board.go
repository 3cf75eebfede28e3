package bench

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"rankcache"
	"rankcache/localboard"
	"rankcache/replay"
	"rankcache/wire"
)

const (
	benchMembers  = 210_000
	benchBoardID  = rankcache.BoardID("1_2_3")
	benchHotBoard = rankcache.BoardID("1_2_4") // the same rows, pinned hot
)

// benchScores returns the board that every server of bench read is filled with:
// a few members with very high scores and a long tail with ties, ids in no order of
// score.
func benchScores(members int) map[string]float64 {
	scores := make(map[string]float64, members)
	for place, member := range benchPlaces(members) {
		scores[benchMember(member)] = float64(1_000_000_000 / (place + 20))
	}
	return scores
}

// benchPlaces returns the members by place when the board begins.
func benchPlaces(members int) []int { return rand.New(rand.NewPCG(3, 5)).Perm(members) }

// benchTop returns the first n rows of the board, found by sorting it.
func benchTop(scores map[string]float64, n int) []rankcache.Entry {
	rows := make([]rankcache.Entry, 0, len(scores))
	for member, score := range scores {
		rows = append(rows, rankcache.Entry{Member: member, Score: score})
	}
	slices.SortFunc(rows, func(a, b rankcache.Entry) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Member, a.Member))
	})
	return rows[:min(n, len(rows))]
}

const (
	drawnUpdates = 1 << 20 // members drawn beforehand, walked in a ring
	updatesTick  = 2 * time.Millisecond
	updatesBatch = 1024 // as many as replay hands over at once
)

// updater applies made-up updates to a board as replay does: in batches, and
// published at most every [replay.DefaultPublishEvery]. What it leaves out is
// polling Kafka and decoding, about 2 µs an update.
type updater struct {
	board  *localboard.Board
	draws  []uint32 // members that are given to, by Zipf over the places
	names  idTable
	scores []float64
	seq    uint64
	batch  []wire.Update
	rate   atomic.Int64 // updates a second
}

// newUpdater fills the board, the first updates of which are each member's score.
func newUpdater(board *localboard.Board, members int) *updater {
	u := &updater{board: board, scores: make([]float64, members),
		draws: make([]uint32, drawnUpdates), batch: make([]wire.Update, 0, updatesBatch)}
	start, places := benchScores(members), benchPlaces(members)
	for i := range members {
		u.names.add(benchMember(i))
		u.scores[i] = start[u.names.at(i)]
		u.add(wire.OpSet, i, 0)
	}
	u.flush()
	rng := rand.New(rand.NewPCG(7, 11))
	zipf := rand.NewZipf(rng, 1.1, 50, uint64(members-1))
	for i := range u.draws {
		u.draws[i] = uint32(places[zipf.Uint64()])
	}
	return u
}

func (u *updater) add(op wire.Op, member int, delta float64) {
	u.scores[member] += delta
	u.seq++
	u.batch = append(u.batch, wire.Update{Board: u.board.ID(), Member: u.names.at(member), Op: op,
		Delta: delta, Score: u.scores[member], Seq: u.seq})
	if len(u.batch) == updatesBatch {
		u.flush()
	}
}

func (u *updater) flush() {
	u.board.Apply(u.batch)
	u.batch = u.batch[:0]
}

// run keeps the rate until ctx is done.
func (u *updater) run(ctx context.Context) error {
	tick := time.NewTicker(updatesTick)
	defer tick.Stop()
	last, published, owed := time.Now(), time.Now(), 0.0
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			owed += now.Sub(last).Seconds() * float64(u.rate.Load())
			last = now
			if owed >= 1 {
				u.apply(int(owed))
				owed -= float64(int(owed))
			}
			if now.Sub(published) >= replay.DefaultPublishEvery {
				u.board.Publish()
				u.board.MarkCurrent(now)
				published = now
			}
		}
	}
}

func (u *updater) apply(n int) {
	for range n {
		u.add(wire.OpIncr, int(u.draws[u.seq%drawnUpdates]), 1)
	}
	u.flush()
}

// idTable holds ids without a pointer for each, which the collector would follow
// again and again: the board under test has none either.
type idTable struct {
	text []byte
	ends []uint32
}

func (t *idTable) add(id string) {
	t.text = append(t.text, id...)
	t.ends = append(t.ends, uint32(len(t.text)))
}

// at returns the i-th id, in the table's own memory.
func (t *idTable) at(i int) string {
	from := uint32(0)
	if i > 0 {
		from = t.ends[i-1]
	}
	return unsafe.String(&t.text[from], t.ends[i]-from)
}
