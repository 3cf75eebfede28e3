package replay

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
)

const (
	// highHeld is how much one board holds before the partitions that are ahead are
	// paused, and lowHeld how much it still holds when they are read on. What several
	// partitions of a long log bring at once, 256 KB of records each, is below highHeld.
	highHeld, lowHeld = maxHeldBytes / 2, maxHeldBytes / 8
	// maxHeldInAll bounds the bytes that all boards hold.
	maxHeldInAll = 64 << 20
	// maxPause is the longest pause: a board that is read on may have to be filled from
	// Redis, one that is not gets older.
	maxPause = 5 * time.Second
	// paceEvery is how often boards with a pause are looked at when nothing is read.
	paceEvery = 50 * time.Millisecond
)

// pacer bounds the size of the reorder buffers. While a board misses an update that
// another partition may still bring, the partitions that are ahead are paused. If that
// does not help, they are read on, and a buffer that is full drops what it has. The
// pacer belongs to the dispatcher's goroutine; the consumer carries out its decisions.
type pacer struct {
	repace *atomic.Bool // tells the consumer that partitions are to be paused or resumed
	pauses prometheus.Counter
	topics signal // wakes the topic watcher, which finds out where the logs end
	total  int64  // bytes that all boards hold
	active map[*feed]bool
	timer  *time.Ticker // runs while any board has a partition paused
}

// pacing is the pacer's state of one board.
type pacing struct {
	seqs   []uint64                 // that came last, by partition
	held   int64                    // bytes, when the pacer last looked
	paused map[*partition]time.Time // since when
	latest time.Time                // the last time more was paused
	spent  bool                     // pausing did not help: not again before the buffer is low
}

func newPacer(repace *atomic.Bool, topics signal, pauses prometheus.Counter) pacer {
	p := pacer{repace: repace, topics: topics, pauses: pauses, active: make(map[*feed]bool), timer: time.NewTicker(paceEvery)}
	p.timer.Stop()
	return p
}

// came notes that a partition brought an update.
func (w *pacing) came(part *partition, seq uint64) {
	for int(part.number) >= len(w.seqs) {
		w.seqs = append(w.seqs, 0)
	}
	w.seqs[part.number] = seq
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
	switch high := held > highHeld || p.total > maxHeldInAll/2; {
	case held <= lowHeld:
		p.resume(f)
		w.spent = false
	case !w.spent && (high || p.active[f]):
		p.decide(f, high, now)
	}
}

// decide pauses the partitions that are ahead, if the board may get what it waits for
// meanwhile: from its gate, or from a partition that is not read to its end.
func (p *pacer) decide(f *feed, high bool, now time.Time) {
	w, t := &f.pacing, f.sources.topic()
	after, gate := f.replica.waitsFor()
	ahead, behind := w.split(t, after)
	if !p.active[f] {
		w.latest = now // earlier ends of the logs do not count
	}
	if !gate && (len(behind) == 0 || t.readTo(behind, w.latest)) || w.pausedFor(now) >= maxPause {
		p.resume(f)
		w.spent = true
		return
	}
	for _, part := range behind {
		p.unpause(w, part) // its next update may be the missing one
	}
	if high {
		p.pause(f, ahead, now)
	}
}

// pausedFor returns for how long a partition has been paused.
func (w *pacing) pausedFor(now time.Time) (longest time.Duration) {
	for _, since := range w.paused {
		longest = max(longest, now.Sub(since))
	}
	return longest
}

// split tells the partitions that brought something later than seq from those that
// may still bring seq.
func (w *pacing) split(t *topic, seq uint64) (ahead, behind []*partition) {
	for n, part := range t.partitions() {
		switch brought := n < len(w.seqs) && w.seqs[n] > 0; {
		case brought && w.seqs[n] > seq:
			ahead = append(ahead, part)
		case brought || !t.shared: // of a shared topic one partition has all of a board
			behind = append(behind, part)
		}
	}
	return ahead, behind
}

// pause pauses partitions beside those that the board has paused.
func (p *pacer) pause(f *feed, more []*partition, now time.Time) {
	w := &f.pacing
	for _, part := range more {
		if _, ok := w.paused[part]; !ok {
			if w.paused == nil {
				w.paused = make(map[*partition]time.Time)
			}
			w.paused[part], w.latest = now, now
			p.want(part, +1)
		}
	}
	if len(w.paused) > 0 && !p.active[f] {
		p.active[f] = true
		p.pauses.Inc()
		p.timer.Reset(paceEvery)
		f.sources.wantEnd.Store(true)
		p.topics.wake()
	}
}

func (p *pacer) unpause(w *pacing, part *partition) {
	if _, ok := w.paused[part]; ok {
		delete(w.paused, part)
		p.want(part, -1)
	}
}

// resume reads on the partitions that the board has paused.
func (p *pacer) resume(f *feed) {
	if !p.active[f] {
		return
	}
	for part := range f.pacing.paused {
		p.unpause(&f.pacing, part)
	}
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

// bound drops the held updates of the boards that hold most, if all hold too much.
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
