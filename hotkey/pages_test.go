package hotkey

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
)

// slowOrigin answers after a while, counts, and fails on demand.
type slowOrigin struct {
	mu       sync.Mutex
	takes    time.Duration
	err      error
	frozen   bool // answers the same rows each time
	state    rankcache.State
	calls    [][]rankcache.BoardID
	inFlight map[rankcache.BoardID]int
	overlap  bool // a board was read twice at once
}

func (o *slowOrigin) set(change func(*slowOrigin)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(o)
}

func (o *slowOrigin) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	boards := make([]rankcache.BoardID, len(qs))
	for i := range qs {
		boards[i] = qs[i].Board
	}
	takes, version, state, err := o.begin(boards)
	defer o.end(boards)
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		err = ctx.Err()
	}
	for i := range qs {
		if err != nil {
			as[i].Fail(err)
			continue
		}
		as[i].Begin(&qs[i], rankcache.SourceRedis, rankcache.Stamp{State: state, Members: qs[i].Limit}, time.Now())
		as[i].Entries = []rankcache.Entry{{Member: "m", Score: float64(version)}}
	}
}

func (o *slowOrigin) begin(boards []rankcache.BoardID) (takes time.Duration, version int, state rankcache.State, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, boards)
	for _, b := range boards {
		if o.inFlight == nil {
			o.inFlight = make(map[rankcache.BoardID]int)
		}
		o.inFlight[b]++
		o.overlap = o.overlap || o.inFlight[b] > 1
	}
	version = len(o.calls)
	if o.frozen {
		version = 0
	}
	return o.takes, version, o.state, o.err
}

func (o *slowOrigin) end(boards []rankcache.BoardID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range boards {
		o.inFlight[b]--
	}
}

func (o *slowOrigin) callCount() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.calls)
}

// inBubble runs a tracker with its boards promoted, in virtual time.
func inBubble(t *testing.T, cfg Config, o *slowOrigin, boards int, play func(*Tracker)) {
	synctest.Test(t, func(t *testing.T) {
		tracker := newTestTracker(t, cfg, o)
		var transitions []transition
		for i := range boards {
			transitions = append(transitions, transition{board: board(i), cause: CauseOwn})
		}
		tracker.apply(time.Now(), transitions)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- tracker.refresh.run(ctx, func() pageMap { return *tracker.pages.Load() })
		}()
		play(tracker)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		if o.overlap {
			t.Error("a board was read twice at once")
		}
	})
}

func board(i int) rankcache.BoardID { return rankcache.BoardID("b" + strconv.Itoa(i)) }

// readFor asks for board 0 every 10 ms and returns the greatest age of its page
// and the reads without one.
func readFor(t *Tracker, d time.Duration) (oldest time.Duration, missed int) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, at, ok := top(t, board(0)); ok {
			oldest = max(oldest, time.Since(at))
		} else {
			missed++
		}
	}
	return oldest, missed
}

func TestPageIsRefreshedAheadWhileRead(t *testing.T) {
	o := &slowOrigin{takes: 20 * time.Millisecond}
	inBubble(t, Config{}, o, 1, func(tr *Tracker) {
		if _, missed := readFor(tr, time.Second); missed > 10 {
			t.Errorf("%d reads without a page in the first second, want a page after 0.1 s", missed)
		}
		before := o.callCount()
		oldest, missed := readFor(tr, 60*time.Second)
		if missed != 0 || oldest > 1300*time.Millisecond {
			t.Errorf("oldest page %v, %d reads without one; want at most 1.3s and 0", oldest, missed)
		}
		if n := o.callCount() - before; n < 52 || n > 68 {
			t.Errorf("%d reads of Redis in 60 s, want about one a second", n)
		}
	})
}

func TestIdlePageIsDropped(t *testing.T) {
	o := &slowOrigin{}
	inBubble(t, Config{}, o, 1, func(tr *Tracker) {
		readFor(tr, 3*time.Second)
		time.Sleep(Idle + 2*time.Second)
		if (*tr.pages.Load())[board(0)].cached.Load() != nil { // it is not too old to be served yet
			t.Error("an idle page is kept")
		}
		before := o.callCount()
		time.Sleep(time.Minute)
		if n := o.callCount() - before; n != 0 {
			t.Errorf("%d reads of Redis for a page without requests", n)
		}
		if _, _, ok := top(tr, board(0)); ok {
			t.Error("a page that was not refreshed was returned")
		}
		time.Sleep(2 * refreshTick)
		if _, at, ok := top(tr, board(0)); !ok || time.Since(at) > 2*refreshTick {
			t.Errorf("no fresh page %v after it was requested again", 2*refreshTick)
		}
	})
}

// While Redis fails or hangs the last good page is served, with its age, until
// it is too old; then readers are sent to Redis; then the page is fresh again.
func TestPageOutlivesErrors(t *testing.T) {
	for name, fault := range map[string]func(*slowOrigin){
		"fails": func(o *slowOrigin) { o.err = errors.New("origin unavailable") },
		"hangs": func(o *slowOrigin) { o.takes = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			o := &slowOrigin{takes: time.Millisecond}
			inBubble(t, Config{}, o, 1, func(tr *Tracker) {
				readFor(tr, 3*time.Second)
				o.set(fault)
				oldest, missed := readFor(tr, 8*time.Second)
				if missed != 0 || oldest < 7*time.Second {
					t.Errorf("oldest page %v, %d reads without one; want the last good page", oldest, missed)
				}
				oldest, missed = readFor(tr, 10*time.Second)
				if missed < 600 || oldest > DefaultStale {
					t.Errorf("oldest page %v, %d of 1000 reads without one; want none older than %v", oldest, missed, DefaultStale)
				}
				if n := o.callCount(); n > 80 {
					t.Errorf("%d reads of Redis in 21 s", n)
				}
				o.set(func(o *slowOrigin) { o.err, o.takes = nil, time.Millisecond })
				readFor(tr, 3*time.Second)
				if _, missed = readFor(tr, 3*time.Second); missed != 0 {
					t.Errorf("%d reads without a page after Redis came back", missed)
				}
			})
		})
	}
}

func TestBoardsDueTogetherShareAPipeline(t *testing.T) {
	o := &slowOrigin{takes: 5 * time.Millisecond}
	inBubble(t, Config{}, o, 40, func(tr *Tracker) {
		for range 600 {
			for i := range 40 {
				top(tr, board(i))
			}
			time.Sleep(50 * time.Millisecond)
		}
		if n := o.callCount(); n > 40 {
			t.Errorf("%d pipelines in 30 s for 40 boards, want about 30", n)
		}
		for _, batch := range o.calls {
			if len(batch) != 40 {
				t.Errorf("a pipeline of %d boards, want 40", len(batch))
			}
		}
	})
}

func TestManyBoardsAreReadInBatches(t *testing.T) {
	o := &slowOrigin{}
	inBubble(t, Config{}, o, 2*maxBatch+1, func(*Tracker) { time.Sleep(2 * refreshTick) })
	if len(o.calls) != 3 {
		t.Errorf("%d pipelines, want 3", len(o.calls))
	}
}

// A board that can't be read must not take the others of its pipeline along.
func TestOneBadBoardDoesNotHurtTheOthers(t *testing.T) {
	r := &refresher{cfg: Config{}.withDefaults(), log: quiet(), metrics: newTestTracker(t, Config{}, nil).metrics}
	batch := []*page{{board: "good"}, {board: "bad"}}
	r.complete(batch, []*rankcache.Top{{Board: "good"}, nil}, make([]time.Time, 2), time.Now())
	if batch[0].cached.Load() == nil || batch[0].fails != 0 || batch[1].cached.Load() != nil || batch[1].fails != 1 {
		t.Errorf("good %+v, bad %+v", batch[0], batch[1])
	}
}

// TestChangedIsCalledForOtherPages: not for one that was read again and is the same.
func TestChangedIsCalledForOtherPages(t *testing.T) {
	var changed []rankcache.BoardID
	r := &refresher{cfg: Config{}.withDefaults(), log: quiet(), metrics: newTestTracker(t, Config{}, nil).metrics,
		changed: func(id rankcache.BoardID) { changed = append(changed, id) }}
	batch := []*page{{board: "a"}, {board: "b"}}
	r.complete(batch, []*rankcache.Top{{Board: "a"}, nil}, make([]time.Time, 2), time.Now())
	r.complete(batch, []*rankcache.Top{{Board: "a"}, {Board: "b"}}, make([]time.Time, 2), time.Now())
	if len(changed) != 2 || changed[0] != "a" || changed[1] != "b" {
		t.Errorf("called for %v", changed)
	}
}

// A page is never replaced by an older state of a replica: its own is what the refresh asks for.
func TestRefreshAsksForNoOlderState(t *testing.T) {
	shown := rankcache.State{Run: 3, Seq: 8}
	origin := &boundedOrigin{state: rankcache.State{Run: 3, Seq: 9}}
	r := &refresher{cfg: Config{}.withDefaults(), log: quiet(), metrics: newTestTracker(t, Config{}, nil).metrics, origin: origin}
	old, fresh := &page{board: "old"}, &page{board: "fresh"}
	old.publish(&rankcache.Top{Board: "old", State: shown}, time.Now(), time.Now())
	r.fetch(t.Context(), []*page{old, fresh})
	if want := []rankcache.State{shown, {}}; !slices.Equal(origin.bounds, want) {
		t.Errorf("asked for %v, want %v", origin.bounds, want)
	}
	if got := old.cached.Load().top.State; got != origin.state {
		t.Errorf("the page is at %v", got)
	}
}

// The page of a board without a state, as one that no writer writes, is not replaced by an older one, either.
func TestRefreshAsksForNoOlderPage(t *testing.T) {
	origin := new(boundedOrigin)
	r := &refresher{cfg: Config{}.withDefaults(), log: quiet(), metrics: newTestTracker(t, Config{}, nil).metrics, origin: origin}
	plain, kept := &page{board: "plain"}, &page{board: "kept"}
	at := time.Now().Add(-time.Minute)
	plain.publish(&rankcache.Top{Board: "plain"}, at, at)
	kept.publish(&rankcache.Top{Board: "kept", State: rankcache.State{Run: 3, Seq: 8}}, at, at)
	r.fetch(t.Context(), []*page{plain, kept})
	if age := origin.ages[0]; age < time.Minute || age > time.Since(at) || origin.ages[1] != 0 {
		t.Errorf("asked for ages of up to %v", origin.ages)
	}
}

// boundedOrigin notes the states and ages that it is asked for.
type boundedOrigin struct {
	state  rankcache.State
	bounds []rankcache.State
	ages   []time.Duration
}

func (o *boundedOrigin) Read(_ context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	for i := range qs {
		o.bounds, o.ages = append(o.bounds, qs[i].MinState), append(o.ages, qs[i].MaxAge)
		as[i].Begin(&qs[i], rankcache.SourceRedis, rankcache.Stamp{State: o.state, Members: 1}, time.Now())
	}
}

// An unchanged page keeps its pointer, so that what readers keep with it stays.
func TestUnchangedPageKeepsItsPointer(t *testing.T) {
	o := &slowOrigin{frozen: true}
	inBubble(t, Config{}, o, 1, func(tr *Tracker) {
		readFor(tr, 2*time.Second)
		first, at, _ := top(tr, board(0))
		readFor(tr, 5*time.Second)
		same, later, _ := top(tr, board(0))
		if first.Kept == nil || same.Kept != first.Kept || !later.After(at) {
			t.Errorf("page %p of %v became %p of %v; want the same page, known to be current later", first.Kept, at, same.Kept, later)
		}
		next := rankcache.State{Run: 7, Sum: 1, HasSum: true} // as after an adoption: other run, same seq and rows
		o.set(func(o *slowOrigin) { o.state = next })
		readFor(tr, 2*time.Second)
		if adopted, _, _ := top(tr, board(0)); adopted.State != next {
			t.Errorf("a page of state %v has %v", next, adopted.State)
		}
		o.set(func(o *slowOrigin) { o.frozen = false })
		readFor(tr, 2*time.Second)
		if changed, _, _ := top(tr, board(0)); changed.Kept == first.Kept {
			t.Error("a changed page kept its pointer")
		}
	})
}

// TestTakenPageFollowsRedis: a page that a reader's answer replaced is whole and as Redis has it after the
// next read, also where Redis has gone back, as one does that lost writes in a failover. Answers that no page
// would have given are not taken.
func TestTakenPageFollowsRedis(t *testing.T) {
	o := &slowOrigin{state: rankcache.State{Run: 1, Seq: 5}}
	inBubble(t, Config{}, o, 1, func(tr *Tracker) {
		readFor(tr, 2*time.Second)
		at := func(seq uint64) rankcache.Answer {
			now := time.Now()
			return rankcache.Answer{Stamp: rankcache.Stamp{State: rankcache.State{Run: 1, Seq: seq}}, Source: rankcache.SourceRedis, CurrentAt: now, Entries: []rankcache.Entry{{Member: "taken"}}}
		}
		take := func(q rankcache.Query, a rankcache.Answer) (seq uint64) {
			q.Board = board(0)
			tr.Take(&q, &a)
			page, _, _ := top(tr, board(0))
			return page.Seq
		}
		ledgers := at(6)
		ledgers.Source = rankcache.SourceLedger
		for what, seq := range map[string]uint64{
			"rows from the second on": take(rankcache.Query{Start: 1, Limit: 1}, at(6)),
			"members":                 take(rankcache.Query{}, at(6)),
			"the last rows":           take(rankcache.Query{Limit: 1, Order: rankcache.Ascending}, at(6)),
			"more than a page":        take(rankcache.Query{Limit: rankcache.MaxTop}, at(6)),
			"a bounded read":          take(rankcache.Query{Limit: 1, MinSeq: 6}, at(6)),
			"between two scores":      take(rankcache.Query{Limit: 1, Range: &rankcache.ScoreRange{}}, at(6)),
			"an error":                take(rankcache.Query{Limit: 1}, rankcache.Answer{Source: rankcache.SourceRedis, Err: errors.New("away")}),
			"the ledger":              take(rankcache.Query{Limit: 1}, ledgers),
			"an earlier state":        take(rankcache.Query{Limit: 1}, at(4)),
		} {
			if seq != 5 {
				t.Errorf("%s: the page is at seq %d", what, seq)
			}
		}
		if seq := take(rankcache.Query{Limit: 1}, at(9)); seq != 9 {
			t.Errorf("the page is at seq %d, a reader was at 9", seq)
		}
		time.Sleep(2 * refreshTick)
		if page, _, _ := top(tr, board(0)); page.Seq != 5 || page.Entries[0].Member == "taken" {
			t.Errorf("the page is at seq %d, Redis at 5", page.Seq)
		}
		o.set(func(o *slowOrigin) { o.takes = 20 * time.Millisecond })
		for begun := o.callCount(); o.callCount() == begun; time.Sleep(time.Millisecond) {
		}
		if seq := take(rankcache.Query{Limit: 1}, at(9)); seq != 9 {
			t.Errorf("the page is at seq %d, a reader was at 9", seq)
		}
		time.Sleep(25 * time.Millisecond)
		if page, _, _ := top(tr, board(0)); page.Seq != 9 {
			t.Errorf("a read that began before the reader's put the page back to seq %d", page.Seq)
		}
		time.Sleep(2 * refreshTick)
		if page, _, _ := top(tr, board(0)); page.Seq != 5 || page.Entries[0].Member == "taken" {
			t.Errorf("the page is at seq %d, Redis at 5", page.Seq)
		}
	})
}

// A read between the refresher's look at the clock of a page and its dropping
// it must not lose the page for longer than one look: the read has left its
// time, so the next look fetches.
func TestReadWhileThePageIsDropped(t *testing.T) {
	r := &refresher{cfg: Config{}.withDefaults()}
	p := &page{board: "1"}
	now := time.Now()
	p.lastRead.Store(now.Add(-Idle - time.Second).UnixNano())
	pages := pageMap{"1": p}
	if batches := r.due(now, pages); len(batches) != 0 {
		t.Fatalf("idle page is fetched: %v", batches)
	}
	if p.read(now, r.cfg.Stale) != nil {
		t.Fatal("a dropped page was read")
	}
	if batches := r.due(now, pages); len(batches) != 1 || !p.inFlight {
		t.Fatal("the requested page is not fetched at the next look")
	}
	if batches := r.due(now, pages); len(batches) != 0 {
		t.Fatal("a page in flight is fetched again")
	}
}

func TestConfigCheck(t *testing.T) {
	if err := (Config{}).Check(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	for i, cfg := range []Config{
		{PromoteRate: 0.5}, {MaxBoards: -1}, {Entries: 501},
		{Residency: -1}, {Refresh: 20 * time.Second},
	} {
		if cfg.Check() == nil {
			t.Errorf("%d: %+v is accepted", i, cfg)
		}
	}
}

// A board that is written is read again at once, 50 ms after the last time at the soonest, and once more if it is being
// read meanwhile. Who waits is told when a read has ended that began later.
func TestWrittenBoardIsReadAtOnce(t *testing.T) {
	o := &slowOrigin{takes: 10 * time.Millisecond}
	inBubble(t, Config{Refresh: 9 * time.Second}, o, 1, func(tr *Tracker) {
		readFor(tr, 2*time.Second)
		reads, begun := o.callCount(), time.Now()
		<-tr.Written(board(0))
		if took := time.Since(begun); o.callCount() != reads+1 || took != o.takes {
			t.Errorf("%d reads in %v after a write, want one in %v", o.callCount()-reads, took, o.takes)
		}
		for range 10 { // each 6 ms
			tr.Written(board(0))
			time.Sleep(6 * time.Millisecond)
		}
		if n := o.callCount() - reads; n != 2 {
			t.Errorf("%d reads in 60 ms after the first, want one", n-1)
		}
		<-tr.Written(board(0))
		begun, reads = time.Now(), o.callCount()
		read := tr.Written(board(0))
		time.Sleep(refreshTick - o.takes + time.Millisecond) // it is being read
		later := tr.Written(board(0))
		<-read
		if o.callCount() != reads+1 {
			t.Errorf("%d reads, want one", o.callCount()-reads)
		}
		if <-later; o.callCount() != reads+2 || time.Since(begun) != 2*refreshTick {
			t.Errorf("%d reads in %v, want a second one after %v", o.callCount()-reads, time.Since(begun), 2*refreshTick)
		}
		if tr.Written("other") != nil {
			t.Error("a board without a page has one read")
		}
	})
}
