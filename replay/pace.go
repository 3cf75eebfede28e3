package replay

import (
	"slices"
	"sync/atomic"
	"time"

	"rankcache"
)

const (
	// highHeld is how much one board holds before the partitions that are ahead are
	// paused, and lowHeld how much it still holds when they are read on. What several
	// partitions of a long log bring at once, 1 MB of records each, is below highHeld.
	highHeld, lowHeld = maxHeldBytes / 2, maxHeldBytes / 8
	// maxHeldInAll bounds what all boards hold.
	maxHeldInAll = 64 << 20
	// maxPause is the longest pause: a board that is read on may have to be filled from
	// Redis, one that is not gets older.
	maxPause = 5 * time.Second
	// paceEvery is how often boards with a pause are looked at when nothing is read.
	paceEvery = 50 * time.Millisecond
)

// pacer bounds what the reorder buffers hold. While a board misses an update that
// another partition may still bring, the partitions that are ahead are paused. If that
// does not help, they are read on, and a buffer that is full drops what it has. The
// pacer belongs to the dispatcher's goroutine; the consumer carries out what it wants.
type pacer struct {
	repace *atomic.Bool // tells the consumer that partitions are to be paused or resumed
	topics signal       // wakes the topic watcher, which finds out where the logs end
	total  int64        // bytes that all boards hold
	active map[*feed]bool
	timer  *time.Ticker // runs while any board has a partition paused
}

// pacing is what the pacer knows of one board.
type pacing struct {
	latest []uint64 // the seq that came last, by partition
	held   int64    // bytes, when the pacer last looked
	paused []*partition
	since  time.Time // of the first pause
	spent  bool      // pausing did not help: not again before the buffer is low
}

func newPacer(repace *atomic.Bool, topics signal) pacer {
	p := pacer{repace: repace, topics: topics, active: make(map[*feed]bool), timer: time.NewTicker(paceEvery)}
	p.timer.Stop()
	return p
}

// came notes that a partition brought an update.
func (w *pacing) came(part *partition, seq uint64) {
	for int(part.number) >= len(w.latest) {
		w.latest = append(w.latest, 0)
	}
	w.latest[part.number] = seq
}

// begin forgets a board's earlier reading.
func (p *pacer) begin(f *feed) {
	p.resume(f)
	f.pacing = pacing{held: f.pacing.held}
}

// tick looks at the boards with a pause, and ends those of boards that are not
// followed any more: others may use the topic.
func (p *pacer) tick(followed map[rankcache.BoardID]*feed, now time.Time) {
	for f := range p.active {
		if followed[f.id] == f {
			p.look(f, now)
		} else {
			p.resume(f)
		}
	}
}

// look pauses and resumes partitions as a board needs it.
func (p *pacer) look(f *feed, now time.Time) {
	w, held := &f.pacing, f.replica.reorder.bytes.Load()
	p.total += held - w.held
	w.held = held
	switch {
	case held <= lowHeld:
		p.resume(f)
		w.spent = false
	case !w.spent && (p.active[f] || held > highHeld || p.total > maxHeldInAll/2):
		p.decide(f, now)
	}
}

// decide pauses the partitions that are ahead if the board may get what it waits for
// meanwhile: from its gate, or from a partition that is not read to its end.
func (p *pacer) decide(f *feed, now time.Time) {
	w, t := &f.pacing, f.sources.topic()
	if !p.active[f] {
		w.since = now
	}
	after, gate := f.replica.waitsFor()
	ahead, behind := w.split(t, after)
	if now.Sub(w.since) < maxPause && (gate || len(behind) > 0 && !t.readTo(behind, w.since)) {
		p.pause(f, ahead)
		return
	}
	p.resume(f)
	w.spent = true
}

// split tells the partitions that brought something later than seq from those that
// may still bring seq.
func (w *pacing) split(t *topic, seq uint64) (ahead, behind []*partition) {
	for n, part := range t.partitions() {
		if n < len(w.latest) && w.latest[n] > seq {
			ahead = append(ahead, part)
		} else {
			behind = append(behind, part)
		}
	}
	return ahead, behind
}

// pause pauses partitions beside those that the board has paused.
func (p *pacer) pause(f *feed, more []*partition) {
	w := &f.pacing
	for _, part := range more {
		if !slices.Contains(w.paused, part) {
			w.paused = append(w.paused, part)
			p.want(part, +1)
		}
	}
	if len(w.paused) > 0 && !p.active[f] {
		p.active[f] = true
		p.timer.Reset(paceEvery)
		f.sources.wantEnd.Store(true)
		p.topics.wake()
	}
}

// resume reads on what the board has paused.
func (p *pacer) resume(f *feed) {
	if !p.active[f] {
		return
	}
	for _, part := range f.pacing.paused {
		p.want(part, -1)
	}
	f.pacing.paused = nil
	f.sources.wantEnd.Store(false)
	if delete(p.active, f); len(p.active) == 0 {
		p.timer.Stop()
	}
}

// want counts the boards that want a partition paused.
func (p *pacer) want(part *partition, more int) {
	part.pausers += more
	part.pause.Store(part.pausers > 0)
	p.repace.Store(true)
}

// bound drops what is held for the boards that hold most, if all hold too much.
func (p *pacer) bound(followed map[rankcache.BoardID]*feed) {
	for p.total > maxHeldInAll {
		var most *feed
		p.total = 0 // boards that are not followed any more are in it
		for _, f := range followed {
			f.pacing.held = f.replica.reorder.bytes.Load()
			p.total += f.pacing.held
			if most == nil || f.pacing.held > most.pacing.held {
				most = f
			}
		}
		if p.total > maxHeldInAll {
			most.replica.dropHeld()
			p.look(most, time.Now())
		}
	}
}
