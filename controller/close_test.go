package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/kafka"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// A board is closing once its period and grace are over. It is closed when the writers
// have committed the marker of every partition, and posts have timed out.
func TestBoardIsClosedAfterTheCommandsOfItsPeriod(t *testing.T) {
	f := newFixture(t, testkit.Kfake(t).Addr(), brokersTime, func(o *Options) { o.PostTimeout = time.Hour })
	yesterday := time.Now().Add(-24 * time.Hour)
	b, running := f.board(t, "gift", yesterday, wire.LifeOpen), f.board(t, "gift", time.Now().Add(time.Hour), wire.LifeOpen)
	want := func(life wire.Life, indexed ...rankcache.BoardID) {
		t.Helper()
		f.look(t)
		var ids []string
		for _, id := range indexed {
			ids = append(ids, string(id))
		}
		if got := f.meta(t, b).Life; got != life || !slices.Equal(f.indexed(t), ids) {
			t.Errorf("life %d, want %d; in the index %q, want %q", got, life, f.indexed(t), ids)
		}
	}
	f.ahead = -24 * time.Hour // its period runs
	want(wire.LifeOpen, b, running)
	f.ahead = 0
	want(wire.LifeClosing, b, running)
	f.commit(t, 1)
	want(wire.LifeClosing, b, running)
	f.commit(t, 1, 1)
	f.ahead = -23 * time.Hour // over, and posts may be under way
	want(wire.LifeClosing, b, running)
	f.ahead = 0
	before := f.meta(t, b)
	want(wire.LifeClosed, running)
	before.Life = wire.LifeClosed
	if got := f.meta(t, b); got != before {
		t.Errorf("meta %+v, want %+v", got, before)
	}
	if ttl := f.redis.TTL(t.Context(), f.opts.Names.MetaKey(b)).Val(); ttl <= 0 {
		t.Error("the meta no longer expires:", ttl)
	}
	if got := f.meta(t, running).Life; got != wire.LifeOpen {
		t.Errorf("the running board's life is %d", got)
	}
	if n := testutil.ToFloat64(f.metrics.closed); n != 1 {
		t.Errorf("%v boards closed, want 1", n)
	}
}

// What the group has committed of a topic that was deleted tells nothing of the commands in the one that has its name now.
func TestOffsetsOfAnotherTopicCloseNothing(t *testing.T) {
	f := newFixture(t, testkit.Kfake(t).Addr(), brokersTime, nil)
	b := f.board(t, "gift", time.Now().Add(-24*time.Hour), wire.LifeOpen)
	want := func(life wire.Life) {
		t.Helper()
		f.look(t)
		if got := f.meta(t, b).Life; got != life {
			t.Errorf("life %d, want %d", got, life)
		}
	}
	former, err := f.kafka.topicID(t.Context())
	must(t, err)
	want(wire.LifeClosing)
	testkit.DeleteTopic(t, f.broker, f.opts.Names.Commands)
	testkit.CreateTopic(t, f.broker, f.opts.Names.Commands, 2, brokersTime)
	f.commitNoted(t, kafka.Note{Topic: former}.String(), 100, 100)
	want(wire.LifeClosing)
	present, err := f.kafka.topicID(t.Context())
	must(t, err)
	f.commitNoted(t, kafka.Note{Topic: present}.String(), 1, 1)
	want(wire.LifeClosed)
}

// What is known of the commands up to one time serves boards that ended before; those that
// end later wait for markers of their own.
func TestMarkersServeBoardsThatEndedBefore(t *testing.T) {
	f := newFixture(t, testkit.Kfake(t).Addr(), brokersTime, nil)
	begin := time.Now()
	f.board(t, "gift", begin.Add(-24*time.Hour), wire.LifeOpen)
	f.look(t)
	f.commit(t, 1, 1)
	f.look(t)
	earlier := f.board(t, "gift", begin.Add(-28*time.Hour), wire.LifeOpen)
	f.look(t)
	if got := f.meta(t, earlier).Life; got != wire.LifeClosed {
		t.Errorf("life %d", got)
	}
	for _, r := range testkit.Records(t, f.broker, f.opts.Names.Commands, 2) {
		if !wire.IsMarker(r.Value) || r.Offset != 0 {
			t.Errorf("record %q at %d", r.Value, r.Offset)
		}
	}
	f.ahead = 48 * time.Hour // the broker's clock is behind: what it appends now may be in time
	later := f.board(t, "gift", begin.Add(time.Hour), wire.LifeOpen)
	f.commit(t, 100, 100)
	f.look(t)
	f.look(t)
	testkit.Records(t, f.broker, f.opts.Names.Commands, 6)
	if got := f.meta(t, later).Life; got != wire.LifeClosing {
		t.Errorf("life %d", got)
	}
	if log := f.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, `not closed yet" boards=1`) || !strings.Contains(log, `waits_for="the clock of Kafka is behind"`) {
		t.Error(log)
	}
}

// Commands that were appended before the end are waited for, those after it are not.
func TestCommandsAreToldFromLateOnes(t *testing.T) {
	f := newFixture(t, testkit.Kfake(t).Addr(), brokersTime, nil)
	produce := func(n int) {
		for range n {
			testkit.Produce(t, f.broker, &kgo.Record{Topic: f.opts.Names.Commands, Key: []byte("k"), Value: []byte("{}")})
		}
	}
	produce(3)
	time.Sleep(2 * time.Millisecond) // times are in milliseconds
	end := time.Now()
	b := f.board(t, "gift", end, wire.LifeOpen)
	meta := f.meta(t, b)
	meta.End = uint64(end.UnixMilli()) - 5000 // and 5 s of grace
	must(t, f.redis.Set(t.Context(), f.opts.Names.MetaKey(b), wire.AppendMeta(nil, &meta), time.Hour).Err())
	must(t, f.redis.ZAdd(t.Context(), f.opts.Names.Ends, redis.Z{Score: float64(meta.End), Member: string(b)}).Err())
	time.Sleep(2 * time.Millisecond)
	produce(2)
	life := func() wire.Life { f.look(t); return f.meta(t, b).Life }
	next := []int64{1, 1}
	partition := testkit.Records(t, f.broker, f.opts.Names.Commands, 1)[0].Partition
	next[partition] = 2
	f.commit(t, next...)
	if got := life(); got != wire.LifeClosing {
		t.Errorf("life %d with a command that came in time", got)
	}
	next[partition] = 3
	f.commit(t, next...)
	if got := life(); got != wire.LifeClosed {
		t.Errorf("life %d", got)
	}
}

// Without the broker's times a command arrives when it is polled, so the controller's own
// clock dates the markers; without the topic no command can come.
func TestMarkersWithoutTheBrokersTime(t *testing.T) {
	for name, settings := range map[string]map[string]string{"senders": {}, "missing": nil} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, testkit.Kfake(t).Addr(), settings, nil)
			b := f.board(t, "gift", time.Now().Add(-24*time.Hour), wire.LifeOpen)
			if settings != nil {
				f.commit(t, 1, 1)
				f.kafka.margin = 48 * time.Hour
				f.look(t)
				if life := f.meta(t, b).Life; life != wire.LifeClosing {
					t.Errorf("life %d by a clock that may be behind", life)
				}
				f.kafka.margin = 0
				f.commit(t, 2, 2)
			}
			f.look(t)
			if life := f.meta(t, b).Life; life != wire.LifeClosed {
				t.Errorf("life %d", life)
			}
			if n := strings.Count(f.log.String(), "LogAppendTime"); n != map[string]int{"senders": 1}[name] {
				t.Errorf("%d warnings: %s", n, f.log.String())
			}
		})
	}
}

// Entries of the index that are wrong are put right, and a life never moves back.
func TestIndexIsPutRight(t *testing.T) {
	f := newFixture(t, testkit.Kfake(t).Addr(), nil, nil)
	old := time.Now().Add(-24 * time.Hour)
	add := func(b rankcache.BoardID) {
		must(t, f.redis.ZAdd(t.Context(), f.opts.Names.Ends, redis.Z{Score: float64(old.UnixMilli()), Member: string(b)}).Err())
	}
	expired := rankcache.BoardID(f.name + "x")
	add(expired)
	endless := f.board(t, "fans", old, wire.LifeOpen) // its meta has the zero time's end
	must(t, f.redis.Set(t.Context(), f.opts.Names.MetaKey(endless), wire.AppendMeta(nil, &wire.Meta{Buckets: 1}), time.Hour).Err())
	add(endless)
	later := f.board(t, "gift", time.Now().Add(24*time.Hour), wire.LifeOpen)
	score := f.redis.ZScore(t.Context(), f.opts.Names.Ends, string(later)).Val()
	add(later)
	final := f.board(t, "gift", old, wire.LifeFinal)
	f.look(t)
	f.look(t)
	if got := f.indexed(t); !slices.Equal(got, []string{string(later)}) || f.redis.ZScore(t.Context(), f.opts.Names.Ends, string(later)).Val() != score {
		t.Errorf("in the index %q", got)
	}
	if a, b, c := f.meta(t, endless).Life, f.meta(t, later).Life, f.meta(t, final).Life; a != wire.LifeOpen || b != wire.LifeOpen || c != wire.LifeFinal {
		t.Errorf("lives %d %d %d", a, b, c)
	}
	bad := f.board(t, "gift", old.Add(-time.Hour), wire.LifeOpen)
	must(t, f.redis.Set(t.Context(), f.opts.Names.MetaKey(bad), "of another version", time.Hour).Err())
	good := f.board(t, "gift", old.Add(-2*time.Hour), wire.LifeOpen)
	if err := f.closeBoards(t.Context()); !errors.Is(err, wire.ErrMeta) {
		t.Errorf("a bad meta: %v", err)
	}
	if life := f.meta(t, good).Life; life != wire.LifeClosed {
		t.Errorf("beside a bad meta: life %d", life)
	}
	if s := f.Status(); s.Closing != 1 || s.Running != 1 || s.Lag < (24*time.Hour).Seconds() {
		t.Errorf("status %+v", s)
	}
}

// roundTrips counts a client's calls; what is in one pipeline is one.
type roundTrips struct{ n atomic.Int64 }

func (*roundTrips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *roundTrips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { r.n.Add(1); return next(ctx, cmd) }
}

func (r *roundTrips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if r.n.Add(1); len(cmds) > batchSize {
			return errors.New("a pipeline without bound")
		}
		return next(ctx, cmds)
	}
}

// Many boards are closed in few round trips, also after Redis has forgotten the script; one
// whose meta can't be read holds up no other.
func TestManyBoardsAreClosedInFewRoundTrips(t *testing.T) {
	f := newFixture(t, testkit.Kfake(t).Addr(), nil, nil)
	var boards []rankcache.BoardID
	for i := range 2*batchSize + 1 {
		boards = append(boards, f.board(t, "gift", time.Now().Add(-24*time.Hour-time.Duration(i)*30*time.Minute), wire.LifeOpen))
	}
	bad, gone, moved := boards[0], boards[1], boards[2]
	must(t, f.redis.Set(t.Context(), f.opts.Names.MetaKey(bad), "no meta", time.Hour).Err())
	must(t, f.redis.Del(t.Context(), f.opts.Names.MetaKey(gone)).Err())
	meta := f.meta(t, moved)
	meta.End = uint64(time.Now().Add(time.Hour).UnixMilli())
	must(t, f.redis.Set(t.Context(), f.opts.Names.MetaKey(moved), wire.AppendMeta(nil, &meta), time.Hour).Err())
	trips := &roundTrips{}
	f.redis.AddHook(trips)
	must(t, f.redis.ScriptFlush(t.Context()).Err())
	trips.n.Store(0)
	if err := f.closeBoards(t.Context()); !errors.Is(err, wire.ErrMeta) || strings.Count(err.Error(), "board ") != 1 {
		t.Errorf("%v, want that of %s alone", err, bad)
	}
	if n := trips.n.Load(); n > 12 { // two pages of the index and its size; three batches: lives, after a flush twice, and the index
		t.Errorf("%d round trips for %d boards", n, len(boards))
	}
	if got := f.indexed(t); !slices.Equal(got, []string{string(bad), string(moved)}) {
		t.Errorf("in the index %q, want %s and %s", got, bad, moved)
	}
	for _, b := range boards[3:] {
		if life := f.meta(t, b).Life; life != wire.LifeClosed {
			t.Fatalf("life of %s %d", b, life)
		}
	}
	if n := testutil.ToFloat64(f.metrics.closed); n != float64(len(boards)-3) {
		t.Errorf("%v boards closed, want %d", n, len(boards)-3)
	}
}

// books is a ledger that is behind, or does not answer, until it has a state.
type books struct {
	err error
	has rankcache.State
}

func (b *books) Settled(_ context.Context, _ rankcache.BoardID, state rankcache.State) (bool, error) {
	return b.has == state, b.err
}

// A board whose class has a ledger is not closed before the ledger has all of it; others are.
func TestBoardWaitsForItsLedger(t *testing.T) {
	ledger := &books{err: errors.New("the database is away")}
	f := newFixture(t, testkit.Kfake(t).Addr(), nil, func(o *Options) { o.Ledger = ledger })
	b, other := f.board(t, "paid", time.Now().Add(-48*time.Hour), wire.LifeOpen), f.board(t, "day", time.Now().Add(-48*time.Hour), wire.LifeOpen)
	want := func(life wire.Life) {
		t.Helper()
		if a, b := f.meta(t, b).Life, f.meta(t, other).Life; a != life || b != wire.LifeClosed {
			t.Errorf("lives %d %d, want %d %d", a, b, life, wire.LifeClosed)
		}
	}
	if err := f.closeBoards(t.Context()); err == nil || !strings.Contains(err.Error(), "the database is away") {
		t.Errorf("without a database: %v", err)
	}
	want(wire.LifeClosing)
	ledger.err = nil
	f.look(t)
	want(wire.LifeClosing)
	ledger.has = f.meta(t, b).State
	f.look(t)
	want(wire.LifeClosed)
}

// Two controllers that both believe to lead close each board once and disturb nothing.
func TestTwoControllersAtOnce(t *testing.T) {
	f := newFixture(t, testkit.Kfake(t).Addr(), brokersTime, nil)
	var boards []rankcache.BoardID
	for i := range 100 {
		boards = append(boards, f.board(t, "gift", time.Now().Add(-24*time.Hour-time.Duration(i)*30*time.Minute), wire.LifeOpen))
	}
	f.commit(t, 1000, 1000)
	var both sync.WaitGroup
	for range 2 {
		term := newTerm(f.Controller, f.kafka)
		both.Go(func() {
			for len(f.indexed(t)) > 0 && t.Context().Err() == nil {
				term.step(t.Context())
			}
		})
	}
	both.Wait()
	for _, b := range boards {
		if life := f.meta(t, b).Life; life != wire.LifeClosed {
			t.Errorf("life of %s %d", b, life)
		}
	}
	if s := f.Status(); s.Error != "" {
		t.Error(s.Error)
	}
}

// One controller has the lease; when it ends, the other goes on.
func TestOneControllerLeads(t *testing.T) {
	f := newFixture(t, testkit.Kfake(t).Addr(), nil, func(o *Options) { o.Every, o.Lease = 10*time.Millisecond, 400*time.Millisecond })
	start := func(id string) (*Controller, func()) {
		o := f.opts
		o.ID, o.Registerer = id, prometheus.NewRegistry()
		c, err := New(o)
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		return c, func() { cancel(); must(t, <-done) }
	}
	leads := func(c *Controller) {
		testkit.Eventually(t, 20*time.Second, func() error {
			if !c.Status().Leading {
				return errors.New("it does not lead")
			}
			return nil
		})
	}
	a, endA := start("a")
	leads(a)
	b, endB := start("b")
	defer endB()
	board := f.board(t, "gift", time.Now().Add(-24*time.Hour), wire.LifeOpen)
	testkit.Eventually(t, 20*time.Second, func() error {
		if n := len(f.indexed(t)); n != 0 {
			return errors.New("the board is not closed")
		}
		return nil
	})
	if f.meta(t, board).Life != wire.LifeClosed || b.Status().Leading {
		t.Errorf("life %d, b leads: %v", f.meta(t, board).Life, b.Status().Leading)
	}
	endA()
	leads(b)
}

// A controller whose clock is wrong closes no board, whoever dates the commands, and says so.
// Otherwise it goes by Redis's clock.
func TestWrongClockClosesNothing(t *testing.T) {
	for _, settings := range []map[string]string{brokersTime, {}} {
		f := newFixture(t, testkit.Kfake(t).Addr(), settings, func(o *Options) { o.Now = nil })
		running, ended := f.board(t, "gift", time.Now().Add(time.Hour), wire.LifeOpen), f.board(t, "gift", time.Now().Add(-24*time.Hour), wire.LifeOpen)
		f.clock.Local = func() time.Time { return time.Now().Add(48 * time.Hour) }
		f.commit(t, 100, 100)
		for range 3 {
			f.step(t.Context())
		}
		if a, b := f.meta(t, running).Life, f.meta(t, ended).Life; a != wire.LifeOpen || b != wire.LifeOpen || len(f.indexed(t)) != 2 {
			t.Errorf("lives %d %d, index %q", a, b, f.indexed(t))
		}
		if s := f.Status(); !strings.Contains(s.Error, "ahead of that of Redis") || f.ClockError() == nil {
			t.Errorf("status %+v, clock %v", s, f.ClockError())
		}
		f.clock.Local = func() time.Time { return time.Now().Add(-2 * time.Second) }
		must(t, f.clock.Compare(t.Context(), 0))
		for range 3 {
			f.step(t.Context())
		}
		if off := time.Until(f.now()); off.Abs() > time.Second || f.ClockError() != nil {
			t.Errorf("it goes by a clock that is %v off, %v", off, f.ClockError())
		}
		if a, b := f.meta(t, running).Life, f.meta(t, ended).Life; a != wire.LifeOpen || b != wire.LifeClosed {
			t.Errorf("lives %d %d", a, b)
		}
	}
}
