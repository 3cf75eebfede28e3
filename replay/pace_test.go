package replay

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/wire"
)

// pacedBoard is a board that is read, at seq 0, with a topic of some partitions.
type pacedBoard struct {
	t     *testing.T
	feed  *feed
	topic *topic
	pacer pacer
	seq   uint64
	now   time.Time
}

func newPacedBoard(t *testing.T, partitions int) *pacedBoard {
	b := &pacedBoard{t: t, feed: feedOf(&fakeBoard{}), topic: newTopic(topicInfo{"update_cache_b", "id", partitions}, false), now: time.Now(), seq: 1,
		pacer: newPacer(new(atomic.Bool), newSignal(), prometheus.NewCounter(prometheus.CounterOpts{Name: "p"}))}
	t.Cleanup(b.pacer.timer.Stop)
	b.feed.replica.begin(b.topic)
	openNow(b.feed.replica)
	return b
}

// hold has partitions bring updates ahead of the missing one until so many bytes are held.
func (b *pacedBoard) hold(bytes int64, partitions ...int) {
	b.t.Helper()
	for n := 0; b.feed.replica.reorder.bytes.Load() < bytes; n++ {
		b.seq++
		b.feed.pacing.came(b.topic.partitions()[partitions[n%len(partitions)]], b.seq)
		b.feed.replica.apply([]wire.Update{{Board: "b", Seq: b.seq}})
	}
	b.look(0)
}

func (b *pacedBoard) look(later time.Duration) {
	b.now = b.now.Add(later)
	b.pacer.tick(b.followed(), b.now)
	b.pacer.look(b.feed, b.now)
}

func (b *pacedBoard) followed() map[rankcache.BoardID]*feed {
	return map[rankcache.BoardID]*feed{"b": b.feed}
}

// drain releases all that is held.
func (b *pacedBoard) drain() {
	b.feed.replica.apply([]wire.Update{{Board: "b", Seq: 1}})
	b.look(0)
}

// ends tells where the partitions end, as requested at a time from now.
func (b *pacedBoard) ends(in time.Duration, highs ...int64) {
	found := map[*partition]int64{}
	for n, p := range b.topic.partitions() {
		found[p] = highs[n]
	}
	b.topic.setEnd(b.now.Add(in), found)
}

func (b *pacedBoard) want(what string, paused ...int) {
	b.t.Helper()
	var got []int
	for n, p := range b.topic.partitions() {
		if p.pause.Load() {
			got = append(got, n)
		}
	}
	if !slices.Equal(got, paused) {
		b.t.Errorf("%s: partitions %d are paused, want %d", what, got, paused)
	}
	if !b.pacer.repace.Swap(false) && len(paused) > 0 {
		b.t.Errorf("%s: the consumer is not notified", what)
	}
}

func TestPacerPausesWhatIsAhead(t *testing.T) {
	b := newPacedBoard(t, 4)
	b.hold(highHeld-1000, 1, 3)
	b.want("not much is held")
	b.hold(highHeld+1000, 1, 3)
	b.want("much is held", 1, 3)
	b.hold(highHeld+2000, 2)
	b.pacer.repace.Store(true)
	b.want("another is ahead", 1, 2, 3)
	b.drain()
	b.want("drained")
	if len(b.pacer.active) != 0 || b.feed.sources.wantEnd.Load() || b.pacer.total != 0 {
		t.Errorf("%d active, %d held", len(b.pacer.active), b.pacer.total)
	}
}

// A partition that is paused and not ahead any more is read on at once: it may have
// what is missing next.
func TestPacerReadsOnWhatIsBehindNow(t *testing.T) {
	b := newPacedBoard(t, 3)
	b.hold(highHeld/2, 1)
	passed := b.seq
	b.hold(highHeld+1000, 2)
	b.want("two are ahead", 1, 2)
	b.feed.replica.board.(*fakeBoard).have.Contiguous = passed
	b.look(0)
	b.want("one is not any more", 2)
	b.look(maxPause - 1)
	b.pacer.repace.Store(true)
	b.want("just before the time is over", 2)
	b.look(1)
	b.want("over")
}

// With one partition the missing update can only be behind what is held. The same
// holds if all partitions are ahead.
func TestPacerReadsOnIfNothingIsBehind(t *testing.T) {
	b := newPacedBoard(t, 1)
	b.hold(highHeld+1000, 0)
	b.want("one partition")
	if b.pacer.active[b.feed] || !b.feed.pacing.spent {
		t.Error("it was paused")
	}
	b = newPacedBoard(t, 2)
	b.hold(highHeld+1000, 0, 1)
	b.want("two, both ahead")
}

// The others may still bring the update until they were read to the end that they had
// after the pause began.
func TestPacerReadsOnWhenTheOthersAreAtTheirEnds(t *testing.T) {
	b := newPacedBoard(t, 3)
	b.topic.partitions()[0].next.Store(7)
	b.topic.partitions()[2].next.Store(5)
	b.ends(-time.Second, 7, 90, 5)
	b.hold(highHeld+1000, 1)
	b.want("the ends of before", 1)
	b.ends(time.Millisecond, 7, 90, 6)
	b.look(time.Second)
	b.pacer.repace.Store(true)
	b.want("partition 2 is behind", 1)
	b.topic.setEnd(b.now, nil)
	b.topic.partitions()[2].next.Store(6)
	b.look(time.Second)
	b.pacer.repace.Store(true)
	b.want("the ends are not known", 1)
	b.ends(0, 7, 90, 6)
	b.look(time.Second)
	b.want("all are read to their ends")
	b.look(time.Second)
	b.hold(highHeld+2000, 1)
	b.want("not paused again before it has drained")
	b.drain()
	b.seq++
	b.feed.replica.board.(*fakeBoard).have.Contiguous = b.seq - 1
	b.hold(highHeld+1000, 1)
	b.want("paused again", 1)
}

func TestPacerPausesForALimitedTime(t *testing.T) {
	b := newPacedBoard(t, 2)
	b.hold(highHeld+1000, 1)
	b.look(maxPause - 1)
	b.want("just before", 1)
	b.look(1)
	b.want("over")
}

// A gate that holds updates back pauses all partitions that are beyond its seq.
func TestPacerPausesForAGate(t *testing.T) {
	b := newPacedBoard(t, 2)
	b.feed.replica.reorder.enabled = false
	b.feed.replica.reorder.Hold(10)
	b.seq = 10
	b.hold(highHeld+1000, 0, 1)
	b.want("held by the gate", 0, 1)
	b.feed.replica.reorder.Raise(b.seq)
	b.look(0)
	b.want("raised")
}

// A board that is not followed any more, or is read anew, leaves nothing paused.
func TestPacerForgets(t *testing.T) {
	b := newPacedBoard(t, 2)
	b.hold(highHeld+1000, 1)
	b.want("paused", 1)
	b.pacer.tick(nil, b.now)
	b.want("not followed any more")
	b = newPacedBoard(t, 2)
	b.hold(highHeld+1000, 1)
	b.pacer.begin(b.feed)
	b.want("read anew")
	if len(b.feed.pacing.seqs) != 0 {
		t.Error("what came of the earlier reading is remembered")
	}
}

// What all boards hold is bounded, too: the one with most is to be filled again.
func TestPacerBoundsAllBoards(t *testing.T) {
	b := newPacedBoard(t, 2)
	b.hold(highHeld/2, 1)
	other := newPacedBoard(t, 2)
	other.hold(highHeld/4, 1)
	b.pacer.total = maxHeldInAll + 1 // of boards that were followed
	followed := map[rankcache.BoardID]*feed{"b": b.feed, "other": other.feed}
	b.pacer.bound(followed)
	if held := b.feed.pacing.held + other.feed.pacing.held; b.pacer.total != held || held < highHeld/4*3 {
		t.Errorf("%d counted, %d held", b.pacer.total, held)
	}
	b.feed.replica.reorder.bytes.Store(maxHeldInAll)
	b.look(0)
	b.pacer.bound(followed)
	if b.feed.replica.reorder.bytes.Load() != 0 || b.feed.replica.visible() || !other.feed.replica.visible() || b.pacer.total != other.feed.pacing.held {
		t.Errorf("%d held, %d counted", b.feed.replica.reorder.bytes.Load(), b.pacer.total)
	}
	if why := b.feed.replica.startRefill(TotalSeq); why == nil || why.kind != kindOverflow || why.suspected {
		t.Errorf("fault %+v", why)
	}
}
