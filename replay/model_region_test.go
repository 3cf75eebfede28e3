package replay

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
)

// modelBeat is how often the keeper of the writing region writes its time.
const modelBeat = 300 * time.Millisecond

// modelFar is a replica of the model Redis in another region: what Redis had, some time later. The log is a mirror there.
// Redis's lock guards it. Nil: Redis itself is read.
type modelFar struct {
	redis   *modelRedis
	journal []modelNote // what Redis had, from when on
	at      int         // of the journal: what the replica has
	reached time.Time   // that it has by then
	lag     time.Duration
	cut     bool
	silent  bool      // no keeper writes
	told    time.Time // that the keeper wrote and the replica has; zero: none
	failed  time.Time // Redis failed over last, of what the replica has: what the keeper wrote before counts no more
}

type modelNote struct {
	since   time.Time
	content modelContent
	lost    time.Time // by a failover: what came from then on, the keeper's time included; zero: nothing
}

func newModelFar(r *modelRedis) *modelFar {
	f := &modelFar{redis: r}
	f.note(r.now)
	r.far = f
	return f
}

// note records what Redis has from now on.
func (f *modelFar) note(now modelContent) {
	if f != nil {
		f.journal = append(f.journal, modelNote{since: time.Now(), content: now})
	}
}

// noteLoss records that Redis has failed over, and what it has now, without what came since a time.
func (f *modelFar) noteLoss(now modelContent, since time.Time) {
	if f != nil {
		f.journal = append(f.journal, modelNote{time.Now(), now, since})
	}
}

// read returns what is read as Redis.
func (r *modelRedis) read() *modelContent {
	if r.far == nil {
		return &r.now
	}
	return &r.far.journal[r.far.at].content
}

// replicate brings the replica to where Redis was a while ago. Its lag grows by standing still.
func (f *modelFar) replicate(now time.Time) {
	if f == nil {
		return
	}
	f.redis.mu.Lock()
	defer f.redis.mu.Unlock()
	if to := now.Add(-f.lag); !f.cut && to.After(f.reached) {
		f.reached = to
	}
	for f.at+1 < len(f.journal) && !f.journal[f.at+1].since.After(f.reached) {
		f.at++
		f.failOver(&f.journal[f.at])
	}
	if beat := f.reached.Truncate(modelBeat); !f.silent && beat.After(f.told) && beat.After(f.failed) {
		f.told = beat
	}
}

// failOver takes the keeper's time back with the changes that Redis has lost.
func (f *modelFar) failOver(n *modelNote) {
	if n.lost.IsZero() {
		return
	}
	f.failed = n.since
	if before := n.lost.Add(-1).Truncate(modelBeat); f.told.After(before) {
		f.told = before
	}
}

// reachedAt is [Config].Reached.
func (f *modelFar) reachedAt() time.Time {
	f.redis.mu.Lock()
	defer f.redis.mu.Unlock()
	return f.told
}

// check returns an error if Redis never had what readers see, or if that is older than it is said to be.
func (f *modelFar) check(state rankcache.State, text string, current time.Time) error {
	f.redis.mu.Lock()
	defer f.redis.mu.Unlock()
	if state.Seq == 0 && text == "" {
		state = rankcache.State{} // what has no change yet may have its run from an update that waits for those before it
	}
	if had := f.redis.had[modelMoment{state.Run, state.Seq}]; !had[text] {
		return fmt.Errorf("read %v with %s; Redis never had that, but %v", state, text, had)
	}
	for i := len(f.journal) - 1; i >= 0 && !current.IsZero(); i-- {
		note := &f.journal[i]
		if s := note.content.state; s.Seq == state.Seq && (s.Run == state.Run || note.content.text == text) {
			return nil // had after that: deleted, or lost by a failover; or all but the number of the run
		}
		if note.since.Before(current) { // what came at that instant may be behind the keeper's time
			if then := note.content.state; state.Before(then) {
				return fmt.Errorf("read %v as of %s; then Redis had %v already", state, current.Format("05.000"), then)
			}
			return nil
		}
	}
	return nil
}

func (w *modelEnv) farDisturbances() []modelEvent {
	cut := modelEvent{"link is cut", func() {
		w.far.cut = true
		w.until["link"] = time.Now().Add(3 * w.lasts())
	}}
	lag := modelEvent{"replica lags", func() {
		w.far.lag = time.Duration(w.rng.IntN(15_000)) * time.Millisecond
		w.until["lag"] = time.Now().Add(3 * w.lasts())
	}}
	silent := modelEvent{"the keeper is silent", func() {
		w.far.silent = true
		w.until["far keeper"] = time.Now().Add(3 * w.lasts())
	}}
	return []modelEvent{cut, cut, cut, lag, lag, lag, silent}
}

// Random histories of a board in a region that only reads.
func TestModelRegion(t *testing.T) {
	runHistories(t, 300, 1_000, runFarHistory)
}

func runFarHistory(t *testing.T, seed uint64) {
	w := newModelEnv(t, seed)
	w.far, w.noWalk = newModelFar(w.redis), true
	w.redis.slack = 30 * time.Second
	if w.kafka.compacted = w.rng.IntN(3) == 0; w.rng.IntN(2) == 0 {
		w.files = &modelFiles{rng: w.random(3)}
	}
	w.redis.durable, w.redis.slowAdopt = w.rng.IntN(2) == 0, w.rng.IntN(4) == 0
	w.producers = make([]modelProducer, 1+w.rng.IntN(2))
	w.members = 1 + w.rng.IntN(30)
	w.rate = []float64{0, 0.01, 0.1, 0.5}[w.rng.IntN(4)]
	w.lost = []float64{0, 0, 0.02}[w.rng.IntN(3)]
	if rand.New(rand.NewPCG(seed, 7)).IntN(5) > 0 {
		w.changes(w.rng.IntN(100))
	}
	w.start()
	defer w.end()
	w.disturbances()
	w.calm()
	w.heal()
}

// Lag, and a link that is cut, close no board, and a board that starts then waits for Redis to come to what the log has given.
func TestModelLagIsNoFault(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newModelEnv(t, seed)
				w.far, w.noWalk = newModelFar(w.redis), true
				w.changes(50)
				w.far.lag, w.rate = 3*time.Second, 0.3
				w.start()
				defer w.end()
				w.run(10 * time.Second)
				if _, open := w.side.boards.Get(modelBoardID); !open {
					w.fail("not open: %+v", w.feed().describe())
				}
				w.far.cut = true
				w.run(20 * time.Second)
				w.far.cut, w.far.lag = false, 0
				w.run(5 * time.Second)
				if n, age := w.side.boards.closed(), w.feed().describe().Age; n > 0 || age > 3*time.Second {
					w.fail("closed %d times, now %v old", n, age)
				}
			})
		})
	}
}
