package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

const (
	// dataClass has the boards with data beside scores.
	dataClass = `classes: [{name: laps, board: "%s:{track}", period: none, ops: [incr, set, delete, best], data: true}]` + "\n"
	// hiders are how many members of a board are hidden and restored: few, so that commands cross.
	hiders = 12
	// inDisorder is the span of numbers whose serials fall as they rise: it has several moves of a member.
	inDisorder = 255
)

// TestHiddenAndData has members hidden and restored at random on some boards, and data beside scores on others, while a
// writer is killed and Redis loses acknowledged changes. Serials come in another sequence than they are given in.
func TestHiddenAndData(t *testing.T) {
	build(t)
	least := 15
	if testkit.Full() {
		least = 300
	}
	f := &fault{
		name: "members are hidden, others have data", losesWrites: true, due: redisAway,
		prepare: func(w *env) { w.hideAndHaveData() },
		inject: func(w *env) {
			w.writing().Kill()
			w.startWriter()
			w.waitReads(faultyReads)
			w.failOver(30)
		},
		hold: func(w *env) { w.waitVaried(least) },
	}
	f.run(t, newFixture(t, &clusters{all: t}))
}

// hideAndHaveData has members of the boards hidden and restored, and makes more boards, with data.
func (w *env) hideAndHaveData() {
	w.writes.Token = "moderator"
	w.writerArgs = append(w.writerArgs, "--write-token", w.writes.Token)
	w.writes.Vary = map[rankcache.BoardID]func(*rand.Rand, *command, int){}
	vary, base := hideSome(wire.NewSerial(time.Now())), w.boards[0].ID+"_result:"
	var hidden []string
	for i := range hiders {
		hidden = append(hidden, memberName(i))
	}
	for _, b := range w.boards {
		w.writes.Vary[b.ID] = vary
		w.reads.Focus.Store(b.ID, hidden)
	}
	for _, tier := range sources {
		b := Board{base + rankcache.BoardID(tier), tier, 60, 2}
		w.boards = append(w.boards, b)
		w.writes.Vary[b.ID] = giveData
	}
	w.class = dataClass
	w.writeRooms(w.roomsText())
	w.reads.Boards, w.writes.Boards = slices.Clone(w.boards), slices.Clone(w.boards)
}

// hideSome returns what has half of the commands be of those who may be hidden, and makes a fifth hide or restore one.
func hideSome(first uint64) func(*rand.Rand, *command, int) {
	return func(rng *rand.Rand, c *command, n int) {
		if rng.IntN(2) == 0 {
			c.Member = memberName(rng.IntN(hiders))
		}
		if rng.IntN(5) > 0 {
			return
		}
		c.Op, c.Delta, c.Score = wire.OpHide.String(), nil, nil
		if rng.IntN(2) == 0 {
			c.Op = wire.OpRestore.String()
		}
		c.Member, c.serial = memberName(rng.IntN(hiders)), first+uint64(n^inDisorder)
		c.Order = wire.HideOrder(c.serial, c.Member)
	}
}

// giveData gives half of the commands data, at times none, and makes some the best of two scores.
func giveData(rng *rand.Rand, c *command, n int) {
	if c.Op == "set" && rng.IntN(2) == 0 {
		score := float64(rng.IntN(300))
		c.Op, c.Score = wire.OpBest.String(), &score
	}
	if data := fmt.Sprintf("replay \"%d\" ä", n); c.Op != "delete" && rng.IntN(2) == 0 {
		if rng.IntN(5) == 0 {
			data = ""
		}
		c.Data = &data
	}
}

// waitVaried waits until there were enough of all that the row is about.
func (w *env) waitVaried(least int) {
	w.Helper()
	w.eventually(func() error {
		moved, unseen, late, given := w.oracle.varied()
		if moved < least || unseen < least || late < least/4 || given < least {
			return fmt.Errorf("members were hidden or restored %d times, changed unseen %d times, %d moves were late, data changed %d times", moved, unseen, late, given)
		}
		w.Logf("hidden or restored %d, changed unseen %d, late moves %d, other data %d", moved, unseen, late, given)
		return nil
	})
}

// varied returns how often members were hidden or restored, were changed while they were hidden, kept what stood in spite
// of a hide or restore, and got other data, on all boards.
func (o *Oracle) varied() (moved, unseen, late, given int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.boards {
		for _, c := range k.now.changes {
			switch a, b := c.before, c.after; {
			case a.hidden != b.hidden:
				moved++
			case a.hidden && a.score != b.score:
				unseen++
			case a == b && a.serial > 0:
				late++ // or what changed nothing
			case a.on && b.on && a.data != b.data:
				given++
			}
		}
	}
	return moved, unseen, late, given
}
