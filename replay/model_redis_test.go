package replay

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"rankcache"
	"rankcache/internal/tick"
	"rankcache/wire"
)

const (
	// modelLoss is for how long an open board may still show what Redis has lost: the
	// longest pause between two looks at a board at rest, and the requests.
	modelLoss = 2200*time.Millisecond + 20*time.Millisecond
	// modelSecondLook is the same for what has to be seen twice, modelWalk for what only
	// the walk finds.
	modelSecondLook, modelWalk = modelLoss + 1200*time.Millisecond, 6 * time.Second
)

var errModelAway = errors.New("model: not reachable")

// modelContent is what the model Redis has of the board at one moment.
type modelContent struct {
	state    rankcache.State // of meta; without a run there is no meta
	adopting bool
	counted  int // members by meta
	set      map[string]float64
	// unaware are the boards of copies that do not know of changes by hand yet.
	unaware []map[string]float64
	text    string    // of set
	since   time.Time // it was made
	data    bool      // members have data: that which modelData tells
}

// texts are members joined with their data, and their scores.
func (c *modelContent) texts(set map[string]float64) map[string]float64 {
	texts := make(map[string]float64, len(set))
	for m, score := range set {
		texts[c.textOf(m, score)] = score
	}
	return texts
}

// textOf joins a member with its data: what that is, its score decides, so that it changes with that.
func (c *modelContent) textOf(member string, score float64) string {
	if n := int(math.Abs(score)) % 4; c.data && n > 0 {
		return rankcache.JoinData(member, strings.Repeat("d", n))
	}
	return member
}

func (c modelContent) clone() modelContent {
	c.set = maps.Clone(c.set)
	c.unaware = slices.Clone(c.unaware) // first: the other's maps stay its own
	for i := range c.unaware {
		c.unaware[i] = maps.Clone(c.unaware[i])
	}
	return c
}

func (c *modelContent) addUp() (sum uint64) {
	for m, score := range c.texts(c.set) {
		sum += wire.Hash(m, score)
	}
	return sum & wire.SumMask
}

func modelText(set map[string]float64) string {
	var b strings.Builder
	for _, m := range slices.Sorted(maps.Keys(set)) {
		fmt.Fprintf(&b, "%s=%g ", m, set[m])
	}
	return b.String()
}

type modelMoment struct{ run, seq uint64 }

// modelShown is a board as readers see it.
type modelShown struct {
	modelMoment
	text string
}

// modelRedis is one board in a model of Redis. It implements Origin.
type modelRedis struct {
	mu        sync.Mutex
	rng       *rand.Rand
	now       modelContent
	past      []modelContent // all of this history, now included
	had       map[modelMoment]map[string]bool
	floor     int       // what is before it in past was changed by hand, or is of an earlier run
	brokeAt   time.Time // when that happened, or changes were lost
	strictAt  time.Time // from then on no copy that was reported as current after brokeAt is older
	server    int
	down      bool
	slow      time.Duration // of each request
	slack     time.Duration // by how much later faults may be noticed, because keepers may be away
	handmade  bool          // something was changed by hand
	pieces    int           // of a scan
	slowAdopt bool
	durable   bool // the board has a run of its own in each era
	newEra    bool // it has none in this one yet
	readopt   uint64
	shown     modelShown // of a lost history, that readers see
	shownAt   time.Time  // since when
	far       *modelFar  // nil: it is read itself
}

func newModelRedis(rng *rand.Rand) *modelRedis {
	r := &modelRedis{rng: rng, had: make(map[modelMoment]map[string]bool), pieces: 1}
	r.put(modelContent{set: map[string]float64{}})
	return r
}

// put makes next the board.
func (r *modelRedis) put(next modelContent) {
	next.text, next.since = modelText(next.texts(next.set)), time.Now()
	at := modelMoment{next.state.Run, next.state.Seq}
	if r.had[at] == nil {
		r.had[at] = make(map[string]bool)
	}
	r.had[at][next.text] = true
	for _, set := range next.unaware {
		r.had[at][modelText(next.texts(set))] = true
	}
	r.now, r.past = next, append(r.past, next)
	r.far.note(r.now)
}

// breaks is called after a change that copies have to notice within a time.
func (r *modelRedis) breaks(within time.Duration) {
	r.floor = len(r.past) - 1
	r.relax(within)
}

func (r *modelRedis) relax(within time.Duration) {
	r.brokeAt = time.Now()
	if at := time.Now().Add(within + r.slack); at.After(r.strictAt) {
		r.strictAt = at
	}
}

// check returns an error if no reader may see a board that was reported as equal to
// Redis at a time.
func (r *modelRedis) check(state rankcache.State, text string, current time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.had[modelMoment{state.Run, state.Seq}][text] {
		return fmt.Errorf("read %v with %s; Redis never had that, but %v", state, text, slices.Collect(maps.Keys(r.had[modelMoment{state.Run, state.Seq}])))
	}
	if current.Before(r.brokeAt) || r.down || time.Now().Before(r.strictAt) {
		return nil
	}
	for i := len(r.past) - 1; i >= r.floor; i-- {
		if c := &r.past[i]; c.state.Run == state.Run && c.state.Seq == state.Seq && c.text == text {
			return nil
		}
	}
	// An update of a lost history that follows on what Redis still has can't be distinguished from its
	// own before Redis is looked at again (history 1960).
	if shown := (modelShown{modelMoment{state.Run, state.Seq}, text}); r.shown != shown {
		r.shown, r.shownAt = shown, time.Now()
	}
	if time.Since(r.shownAt) < modelLoss+r.slack {
		return nil
	}
	return fmt.Errorf("read %v with %s, which is not of the history that Redis has: %v with %s", state, text, r.now.state, r.now.text)
}

// change is the writer's script. It returns false if the writer has to wait.
func (r *modelRedis) change(op wire.Op, member string, value float64, at time.Time) (u wire.Update, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down || r.now.adopting {
		return u, false
	}
	if !r.now.state.HasSum || len(r.now.set) != r.now.counted {
		if r.adopt(at); r.now.adopting {
			return u, false
		}
	}
	if r.newEra {
		r.turn(at)
	}
	c := r.now.clone()
	before, was := c.set[member]
	score := value
	if was {
		c.state.Sum -= wire.Hash(c.textOf(member, before), before)
		if op == wire.OpIncr {
			score += before
		}
	}
	for _, set := range append([]map[string]float64{c.set}, c.unaware...) {
		if set[member] = score; op == wire.OpDelete {
			delete(set, member)
		}
	}
	if op != wire.OpDelete {
		c.state.Sum += wire.Hash(c.textOf(member, score), score)
	}
	c.state.Sum &= wire.SumMask
	c.state.Seq++
	c.counted = len(c.set)
	r.put(c)
	u = wire.Update{Board: modelBoardID, Member: member, Op: op, OrderID: fmt.Sprint("o", r.rng.Uint32()), At: 1,
		Run: c.state.Run, Seq: c.state.Seq, Sum: c.state.Sum, HasSum: true, Members: c.counted}
	if op == wire.OpIncr {
		u.Delta = value
	}
	if op != wire.OpDelete {
		u.Score = score
		_, u.Data = rankcache.SplitData(c.textOf(member, score))
	}
	return u, true
}

// adopt begins a new run and adds up the board, a large one later.
func (r *modelRedis) adopt(at time.Time) {
	c := r.now.clone()
	c.state.Run = max(c.state.Run+1, uint64(at.UnixMilli())<<10+r.rng.Uint64N(1<<10))
	c.unaware, r.newEra = nil, false
	c.adopting = r.slowAdopt && len(c.set) > 0
	c.counted, c.state.Sum, c.state.HasSum = len(c.set), c.addUp(), true
	if c.adopting {
		c.state.Sum, c.state.HasSum = 0, false
	}
	r.put(c)
	r.breaks(modelLoss)
}

// turn begins a new run of the same state, as prepare.lua does before the first change in an era.
func (r *modelRedis) turn(at time.Time) {
	r.newEra = false
	c := r.now.clone()
	c.state.Run = max(c.state.Run+1, uint64(at.UnixMilli())<<10+r.rng.Uint64N(1<<10))
	r.put(c)
}

// turnNow gives the board a new run, without a change.
func (r *modelRedis) turnNow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(time.Now())
}

// state returns that of the board.
func (r *modelRedis) state() rankcache.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now.state
}

// work is what writers do from time to time beside changes.
func (r *modelRedis) work() {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.down:
	case r.now.adopting:
		c := r.now.clone()
		c.adopting, c.counted, c.state.Sum, c.state.HasSum = false, len(c.set), c.addUp(), true
		r.put(c)
	case r.readopt != 0:
		if r.readopt == r.now.state.Run {
			r.adopt(time.Now())
		}
		r.readopt = 0
	}
}

// byHand changes the sorted set past the writer.
func (r *modelRedis) byHand(change func(set map[string]float64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.now.clone()
	c.unaware = append(c.unaware, maps.Clone(c.set))
	change(c.set)
	r.put(c)
	r.handmade = true
	within := modelWalk
	if len(c.set) != c.counted {
		within = modelSecondLook
	}
	r.breaks(within)
}

// lose removes keys, as expiry and DEL do.
func (r *modelRedis) lose(set, meta bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.now.clone()
	c.unaware = append(c.unaware, maps.Clone(c.set))
	if set {
		clear(c.set)
	}
	if meta {
		c.state, c.counted, c.adopting, c.unaware = rankcache.State{}, 0, false, nil
	}
	r.put(c)
	r.breaks(modelSecondLook)
}

// failOver loses the last n changes.
func (r *modelRedis) failOver(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, len(r.past)-1)
	lost := time.Now()
	if n > 0 {
		lost = r.past[len(r.past)-n].since
	}
	r.past = r.past[:len(r.past)-n]
	r.now = r.past[len(r.past)-1]
	r.far.noteLoss(r.now, lost)
	r.floor = min(r.floor, len(r.past)-1)
	r.server++
	r.newEra = r.durable && r.now.state.Run != 0
	r.relax(modelLoss)
}

// answer sets whether and how slowly Redis answers.
func (r *modelRedis) answer(down bool, slow time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down, r.slow = down, slow
	within := modelSecondLook
	switch {
	case down || slow > 0:
		within = time.Hour // until it answers as before
	case r.handmade:
		within = modelWalk
	}
	r.strictAt = time.Now().Add(within + r.slack)
}

// request does something at one moment during a request.
func (r *modelRedis) request(ctx context.Context, do func()) error {
	r.mu.Lock()
	wait := time.Duration(r.rng.IntN(1500))*time.Microsecond + r.slow/2
	r.mu.Unlock()
	tick.Sleep(ctx, wait)
	r.mu.Lock()
	down := r.down
	if !down && ctx.Err() == nil {
		do()
	}
	r.mu.Unlock()
	tick.Sleep(ctx, wait)
	if down {
		return errModelAway
	}
	return ctx.Err()
}

func (r *modelRedis) stamp(at time.Time) rankcache.Stamp {
	now := r.read()
	s := rankcache.Stamp{State: now.state, Members: len(now.set), Adopting: now.adopting, At: at}
	if now.adopting || now.counted != s.Members {
		s.Sum, s.HasSum = 0, false
	}
	return s
}

func (r *modelRedis) Stamps(ctx context.Context, boards []rankcache.BoardID) ([]rankcache.Stamp, error) {
	stamps, at := make([]rankcache.Stamp, len(boards)), time.Now()
	err := r.request(ctx, func() { stamps[0] = r.stamp(at) })
	return stamps, err
}

func (r *modelRedis) Sample(ctx context.Context, _ rankcache.BoardID, members []string, random int) (s Sample, err error) {
	at := time.Now()
	err = r.request(ctx, func() {
		s = Sample{Stamp: r.stamp(at), Given: make(map[string]float64)}
		for text := range r.now.texts(r.now.set) {
			s.Data = s.Data.With(rankcache.SplitData(text))
		}
		for _, m := range members {
			if score, ok := r.read().set[m]; ok {
				s.Given[m] = score
			}
		}
		all := slices.Sorted(maps.Keys(r.read().set))
		for i := 0; len(all) > 0 && i < random; i++ {
			m := all[r.rng.IntN(len(all))]
			s.Random = append(s.Random, rankcache.Entry{Member: m, Score: r.read().set[m]})
		}
	})
	return s, err
}

func (r *modelRedis) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	at := time.Now()
	err := r.request(ctx, func() {
		var all []rankcache.Entry
		for m, score := range r.read().set {
			all = append(all, rankcache.Entry{Member: m, Score: score})
		}
		slices.SortFunc(all, func(a, b rankcache.Entry) int {
			if a.Score != b.Score {
				return map[bool]int{true: -1, false: 1}[a.Score > b.Score]
			}
			return strings.Compare(b.Member, a.Member)
		})
		for i := range qs {
			as[i].Begin(&qs[i], rankcache.SourceRedis, r.stamp(at), at)
			for text := range r.now.texts(r.now.set) {
				as[i].Data = as[i].Data.With(rankcache.SplitData(text))
			}
			as[i].Entries = all[min(qs[i].Start, len(all)):min(qs[i].Start+qs[i].Limit, len(all))]
		}
	})
	for i := range as {
		if err != nil {
			as[i].Fail(err)
		}
	}
}

// Scan returns members that do not change once, as ZSCAN does.
func (r *modelRedis) Scan(ctx context.Context, board rankcache.BoardID, fn func([]rankcache.Entry) error) (before, after rankcache.Stamp, err error) {
	one := []rankcache.BoardID{board}
	stamps, err := r.Stamps(ctx, one)
	if before = stamps[0]; err != nil {
		return before, after, err
	}
	for piece := range r.pieces {
		var es []rankcache.Entry
		err = r.request(ctx, func() {
			for m, score := range r.read().set {
				if int(modelHash(m))%r.pieces == piece {
					es = append(es, rankcache.Entry{Member: r.now.textOf(m, score), Score: score})
				}
			}
		})
		if err != nil {
			return before, after, err
		}
		if err = fn(es); err != nil {
			return before, after, err
		}
	}
	stamps, err = r.Stamps(ctx, one)
	if after = stamps[0]; err == nil && (after.Run != before.Run || after.Seq < before.Seq) {
		err = errors.New("model: another run or a lower seq after the scan")
	}
	return before, after, err
}

func modelHash(member string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(member))
	return h.Sum32() >> 1
}

func (r *modelRedis) ServerID(ctx context.Context, _ rankcache.BoardID) (id string, err error) {
	err = r.request(ctx, func() { id = fmt.Sprint("server ", r.server) })
	return id, err
}

// Histories tells nothing: a board that is gone was deleted.
func (r *modelRedis) Histories(_ context.Context, boards []rankcache.BoardID, _ bool) ([]string, error) {
	return make([]string, len(boards)), nil
}

func (r *modelRedis) Readopt(ctx context.Context, _ rankcache.BoardID, run uint64) error {
	return r.request(ctx, func() { r.readopt = run })
}
