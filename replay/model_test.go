package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/localboard"
	"rankcache/rooms"
	"rankcache/wire"
)

const (
	modelBoardID = rankcache.BoardID("1_2_3")
	modelTick    = 10 * time.Millisecond
	// modelHeals is within what time a board is open and equal to Redis after the last
	// disturbance: gates pause up to 45 s between two loads.
	modelHeals = 2 * time.Minute
	// envModelSeed names one history, which is then run over and over: what the model does
	// depends on the seed alone, but the jitter of the parts under test does not.
	envModelSeed = "RANKCACHE_SEED"
)

var modelTopic = wire.DefaultNames().Topic(modelBoardID)

// Random histories of one board, in virtual time: everything but the Kafka client is
// real, Redis and Kafka are models that are disturbed in all ways that are known. What
// readers see is looked at all the time, and at the end the board must be open.
func TestModel(t *testing.T) {
	runHistories(t, 300, 5_000, runHistory)
}

// runHistories runs histories, in full size more of them, by several workers.
func runHistories(t *testing.T, histories, full int, run func(*testing.T, uint64)) {
	if testkit.Full() && !testkit.Race { // scripts/test.sh runs models without
		histories = full
	}
	first, again := uint64(1), 1
	if seed, err := strconv.ParseUint(os.Getenv(envModelSeed), 10, 64); err == nil {
		first, histories, again = seed, 1, 100
	}
	workers := min(runtime.GOMAXPROCS(0), histories*again)
	for worker := range workers {
		t.Run(strconv.Itoa(worker), func(t *testing.T) {
			t.Parallel()
			for i := worker; i < histories*again && !t.Failed(); i += workers {
				seed := first + uint64(i/again)
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { run(t, seed) })
				})
			}
		})
	}
}

// modelEnv is one history.
type modelEnv struct {
	t      *testing.T
	seed   uint64
	rng    *rand.Rand
	text   modelLogText
	log    *slog.Logger
	failed atomic.Bool

	redis      *modelRedis
	kafka      *modelLog
	files      *modelFiles
	producers  []modelProducer
	members    int
	partitions int
	rate       float64              // changes per tick
	lost       float64              // of the changes are never produced
	until      map[string]time.Time // when what goes on ends, by name
	noWalk     bool                 // what the walk would find soon is left to checksums
	workAt     time.Time
	keepers    *modelKeepers // nil: there are none
	far        *modelFar     // nil: it is the region of the writers
	stream     *modelStream  // nil: the log is in Kafka

	side *modelSidecar
}

// modelSidecar is one life of the sidecar.
type modelSidecar struct {
	runner *Runner
	boards *modelBoards
	reader *modelReader
	stop   func()
}

func runHistory(t *testing.T, seed uint64) {
	w := newModelEnv(t, seed)
	if w.kafka.compacted = w.rng.IntN(3) == 0; w.rng.IntN(2) == 0 {
		w.files = &modelFiles{rng: w.random(3)}
	}
	w.redis.pieces, w.redis.slowAdopt = 1+w.rng.IntN(4), w.rng.IntN(4) == 0
	w.redis.durable = w.random(5).IntN(2) == 0
	w.redis.now.data = w.random(7).IntN(2) == 0
	if w.random(6).IntN(3) == 0 {
		w.keepers = newModelKeepers(w, true)
		defer w.keepers.stop()
	}
	kind := w.random(4)
	if w.kafka.shared = kind.IntN(3) == 0; w.kafka.shared {
		w.partitions = []int{1, 2, 4, 16}[kind.IntN(4)]
	}
	w.kafka.create(w.partitions)
	w.producers = make([]modelProducer, 1+w.rng.IntN(2))
	w.members, w.noWalk = 1+w.rng.IntN(30), w.rng.IntN(3) == 0
	w.rate = []float64{0, 0.01, 0.1, 0.5}[w.rng.IntN(4)]
	w.lost = []float64{0, 0, 0.02}[w.rng.IntN(3)]
	if n := w.rng.IntN(100); kind.IntN(5) > 0 { // else the board has no change yet
		w.changes(n)
	}
	w.start()
	defer w.end()
	w.disturbances()
	w.calm()
	w.heal()
}

// newModelEnv returns a quiet model with an empty board and one partition.
func newModelEnv(t *testing.T, seed uint64) *modelEnv {
	w := &modelEnv{t: t, seed: seed, until: make(map[string]time.Time), partitions: 1, members: 20}
	w.rng = w.random(0)
	w.log = slog.New(slog.NewTextHandler(&w.text, nil))
	w.redis = newModelRedis(w.random(1))
	w.kafka = &modelLog{rng: w.random(2)}
	w.kafka.create(1)
	w.producers = make([]modelProducer, 1)
	return w
}

func (w *modelEnv) random(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, stream)) }

// changes makes n changes and produces their updates.
func (w *modelEnv) changes(n int) {
	for range n {
		w.change()
		w.produce(time.Now())
	}
}

// end stops the sidecar. The log is shown after a failure.
func (w *modelEnv) end() {
	w.side.stop()
	if w.failed.Load() {
		w.t.Logf("%s=%d; the log:\n%s", envModelSeed, w.seed, w.text.String())
	}
}

// modelLogText is what was logged.
type modelLogText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *modelLogText) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *modelLogText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (w *modelEnv) fail(format string, args ...any) {
	if w.failed.CompareAndSwap(false, true) {
		w.t.Errorf("history %d, %s: %s", w.seed, time.Now().Format("05.000"), fmt.Sprintf(format, args...))
		w.log.Error("FAILED", "why", fmt.Sprintf(format, args...))
	}
}

// start starts the sidecar.
func (w *modelEnv) start() {
	boards := &modelBoards{Boards: localboard.NewBoards()}
	cfg := Config{Brokers: "model", Names: wire.DefaultNames(), SaveEvery: 2 * time.Second}
	if w.kafka.shared {
		cfg.Log = func(rankcache.BoardID) rooms.Log {
			return rooms.Log{Topic: modelTopic, Shared: true, First: time.Now().Add(-time.Hour)}
		}
	}
	if w.files != nil {
		cfg.Files = w.files
	}
	if w.keepers != nil {
		cfg.States = w.keepers
	}
	if w.far != nil {
		cfg.Reached = w.far.reachedAt
	}
	if w.stream != nil {
		w.stream.configure(&cfg)
		if w.noWalk {
			cfg.AuditRows = -1
		}
	}
	r, err := New(cfg, boards, w.redis, w.log, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if r.walks.Store(true); w.keepers != nil {
		r.keeper.older = w.keepers.older
	}
	r.Follow([]rankcache.BoardID{modelBoardID})
	queue := newBatches()
	ctx, cancel := context.WithCancel(context.Background())
	group, ctx := errgroup.WithContext(ctx)
	w.side = &modelSidecar{runner: r, boards: boards, reader: newModelReader(w.kafka, r, queue)}
	boards.opened = w.look
	w.side.stop = func() {
		cancel()
		if err := group.Wait(); err != nil {
			w.fail("the sidecar ended: %v", err)
		}
	}
	defer synctest.Wait() // the board is made
	if w.stream != nil {  // nothing of it is a model
		group.Go(func() error { return r.Run(ctx) })
		return
	}
	group.Go(func() error { return newDispatcher(&r.common, queue).run(ctx) })
	group.Go(func() error { return newTotalsPoller(&r.common, r.keeper).run(ctx) })
	group.Go(func() error { return r.asker.run(ctx) })
	if !w.noWalk {
		group.Go(func() error { return newWalker(&r.common, r.compares).run(ctx) })
	}
	group.Go(func() error { return r.keepMembership(ctx, group) })
	if cfg.Files != nil {
		group.Go(func() error { return newSaver(&r.common, cfg.Files, r.cfg.SaveEvery).run(ctx) })
	}
}

func (w *modelEnv) restart() {
	if w.files != nil && w.rng.IntN(3) == 0 {
		w.files.freeze() // it is killed
	}
	w.side.stop()
	w.start()
}

// change has a writer change a random member.
func (w *modelEnv) change() {
	op := []wire.Op{wire.OpIncr, wire.OpIncr, wire.OpIncr, wire.OpSet, wire.OpDelete}[w.rng.IntN(5)]
	clock := time.Duration(0)
	if w.rng.IntN(2) == 0 {
		clock = time.Duration(w.rng.IntN(2000)-1000) * time.Millisecond
	}
	u, ok := w.redis.change(op, w.member(), float64(1+w.rng.IntN(9)), time.Now().Add(clock))
	if !ok || w.rng.Float64() < w.lost {
		return
	}
	if w.stream != nil {
		w.stream.add(&u)
		return
	}
	p := &w.producers[w.rng.IntN(len(w.producers))]
	if p.queue = append(p.queue, u); w.rng.IntN(20) == 0 {
		p.queue = append(p.queue, u) // a repeat
	}
}

func (w *modelEnv) member() string { return fmt.Sprint("m", w.rng.IntN(w.members)) }

func (w *modelEnv) produce(now time.Time) {
	if w.kafka.away {
		return
	}
	for i := range w.producers {
		p := &w.producers[i]
		if now.Before(p.stalled) {
			continue
		}
		for i := range p.queue {
			w.kafka.produce(&p.queue[i])
		}
		p.queue = p.queue[:0]
	}
}

// tick lets a moment pass.
func (w *modelEnv) tick() {
	time.Sleep(modelTick)
	synctest.Wait()
	now := time.Now()
	for n := w.rate; w.rng.Float64() < n; n-- {
		w.change()
	}
	if w.rng.IntN(3) > 0 {
		w.produce(now)
	}
	if now.After(w.workAt) {
		w.redis.work()
		w.workAt = now.Add(time.Second)
	}
	w.far.replicate(now)
	if w.stream == nil {
		w.side.reader.watch(now, w.side.runner.topicsWake)
		w.side.reader.read(now)
	}
	w.look()
	w.lookAtFaults(now)
}

func (w *modelEnv) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && !w.failed.Load(); {
		w.tick()
	}
}

func (w *modelEnv) feed() *feed { return w.side.runner.feeds.current()[modelBoardID] }

// look compares what readers see with what Redis had.
func (w *modelEnv) look() {
	b, ok := w.side.boards.Get(modelBoardID)
	if !ok {
		return
	}
	current := b.CurrentAt() // before: what is published meanwhile may be current later
	page := rankcache.One(context.Background(), b, rankcache.Query{Limit: 1000})
	if errors.Is(page.Err, rankcache.ErrNotKept) {
		return // it was emptied meanwhile: the sidecar asks Redis
	}
	set, sum := make(map[string]float64), uint64(0)
	for _, e := range page.Entries {
		text := rankcache.JoinData(e.Member, page.Data.Of(e.Member))
		set[text] = e.Score
		sum += wire.Hash(text, e.Score)
	}
	faulty := w.side.boards.board
	switch {
	case len(page.Entries) != page.Members || len(set) != page.Members:
		w.fail("%d entries, %d of them different, on a board of %d members", len(page.Entries), len(set), page.Members)
	case page.HasSum && page.Sum != sum&wire.SumMask:
		w.fail("the entries add up to %012x, their checksum is %012x", sum&wire.SumMask, page.Sum)
	case faulty.isWrong():
	case w.far != nil:
		if err := w.far.check(page.State, modelText(set), current); err != nil {
			w.fail("%v", err)
		}
	default:
		if w.noWalk && !page.HasSum { // nothing but the walk tells that soon
			current = time.Time{}
		}
		if err := w.redis.check(page.State, modelText(set), current); err != nil {
			w.fail("%v", err)
		}
	}
}

func (b *modelBoard) isWrong() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wrong != "" || time.Since(b.mendedAt) <= DefaultPublishEvery
}

// lookAtFaults expects that faults of memory and of apply are found in time.
func (w *modelEnv) lookAtFaults(now time.Time) {
	w.redis.mu.Lock()
	answers := !w.redis.down && w.redis.slow == 0 && now.After(w.redis.strictAt)
	w.redis.mu.Unlock()
	b := w.side.boards.board
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.CurrentAt()) > modelLoss+w.redis.slack {
		b.changedAt, b.wrongAt = now, now // the log is behind, so that nothing can be compared
	}
	if b.wrongFor != "" {
		w.fail("%s", b.wrongFor)
	}
	if !answers || !w.feed().replica.readable.Load() {
		return
	}
	if b.wrong != "" && now.Sub(b.wrongAt) > modelLoss+w.redis.slack {
		w.fail("member %s was changed wrongly, and that is not found after %v", b.wrong, now.Sub(b.wrongAt))
	}
	if b.changed != "" && now.Sub(b.changedAt) > modelWalk {
		w.fail("member %s changed in memory, and that is not found after %v", b.changed, now.Sub(b.changedAt))
	}
}

// disturbances are what happens to the board.
func (w *modelEnv) disturbances() {
	w.run(time.Duration(w.rng.IntN(6000)) * time.Millisecond)
	for range 1 + w.rng.IntN(6) {
		w.disturb()
		w.run(time.Duration([]int{0, 50, 400, 4000}[w.rng.IntN(4)]+w.rng.IntN(50)) * time.Millisecond)
		w.over(time.Now())
	}
}

// lasts returns a random time.
func (w *modelEnv) lasts() time.Duration {
	return time.Duration(w.rng.IntN([]int{100, 1000, 9000}[w.rng.IntN(3)])) * time.Millisecond
}

// over ends what has lasted long enough.
func (w *modelEnv) over(now time.Time) {
	for name, end := range w.until {
		if now.Before(end) {
			continue
		}
		delete(w.until, name)
		switch name {
		case "redis":
			w.redis.answer(false, 0)
		case "kafka":
			w.kafka.away = false
		case "link":
			w.far.cut = false
		case "lag":
			w.far.lag = 0
		case "far keeper":
			w.far.silent = false
		}
	}
}

// modelEvent is what may happen.
type modelEvent struct {
	name string
	do   func()
}

func (w *modelEnv) disturb() {
	all := []modelEvent{
		{"fail over", w.failOver},
		{"fail over", w.failOver},
		{"delete", func() { w.redis.lose(true, true) }},
		{"expire the set", func() { w.redis.lose(true, false) }},
		{"expire the meta", func() { w.redis.lose(false, true) }},
		{"change by hand", w.byHand},
		{"new run", func() {
			w.redis.mu.Lock()
			defer w.redis.mu.Unlock()
			if !w.redis.down && w.redis.now.state.Run != 0 && !w.redis.now.adopting {
				w.redis.adopt(time.Now())
			}
		}},
		{"Redis is away", func() {
			w.redis.answer(true, 0)
			w.until["redis"] = time.Now().Add(w.lasts())
		}},
		{"Redis is slow", func() {
			w.redis.answer(false, time.Duration(w.rng.IntN(1500))*time.Millisecond)
			w.until["redis"] = time.Now().Add(w.lasts())
		}},
		{"partition stalls", func() { w.kafka.stall(w.lasts()) }},
		{"partition stalls", func() { w.kafka.stall(w.lasts()) }},
		{"writer stalls", func() { w.producers[w.rng.IntN(len(w.producers))].stalled = time.Now().Add(w.lasts()) }},
		{"writer stalls", func() { w.producers[w.rng.IntN(len(w.producers))].stalled = time.Now().Add(w.lasts()) }},
		{"Kafka is away", func() {
			w.kafka.away = true
			w.until["kafka"] = time.Now().Add(w.lasts())
		}},
		{"compaction", func() {
			if w.kafka.compacted {
				w.kafka.compact()
			}
		}},
		{"retention", w.kafka.cut},
		{"restart", w.restart},
		{"restart", w.restart},
		{"named anew", w.nameAnew},
		{"topic is made again", func() { w.kafka.create(w.partitions) }},
		{"partitions are added", func() {
			more := w.rng.IntN(3)
			if w.kafka.grow(more); w.kafka.shared {
				w.partitions += more
			}
		}},
		{"changes", func() {
			for range w.rng.IntN(60) {
				w.change()
			}
		}},
		{"wrong apply", func() { w.side.boards.board.injure(true, "", false) }},
		{"memory changes", func() { w.side.boards.board.injure(false, w.member(), w.rng.IntN(2) == 0) }},
	}
	if w.far != nil {
		all = append(all, w.farDisturbances()...)
	}
	if w.stream != nil {
		all = append(all, w.streamDisturbances()...)
	}
	event := all[w.rng.IntN(len(all))]
	if w.noWalk && (event.name == "change by hand" || event.name == "memory changes") {
		return
	}
	w.log.Info("EVENT "+event.name, "redis", w.redis.now.state, "members", len(w.redis.now.set))
	event.do()
}

// nameAnew has the board dropped and followed again, by the same process.
func (w *modelEnv) nameAnew() {
	for _, boards := range [][]rankcache.BoardID{nil, {modelBoardID}} {
		w.side.runner.Follow(boards)
		for (w.feed() != nil) != (boards != nil) {
			time.Sleep(modelTick)
			synctest.Wait()
		}
	}
}

// failOver has Redis lose changes. What the writers had not produced of them comes
// late, or never.
func (w *modelEnv) failOver() {
	w.redis.failOver(w.rng.IntN([]int{3, 20, 1000}[w.rng.IntN(3)]))
	w.log.Info("after the failover", "redis", w.redis.now.state)
	if w.stream != nil {
		w.stream.failedOver()
	}
	if w.rng.IntN(2) == 0 {
		w.redis.answer(true, 0)
		w.until["redis"] = time.Now().Add(w.lasts())
	}
	zombie := modelProducer{stalled: time.Now().Add(w.lasts())}
	for i := range w.producers {
		p := &w.producers[i]
		switch w.rng.IntN(3) {
		case 0: // they are produced before the next ones
		case 1:
			zombie.queue, p.queue = append(zombie.queue, p.queue...), nil
		case 2:
			p.queue = nil
		}
	}
	w.producers = append(w.producers, zombie)
}

func (w *modelEnv) byHand() {
	m, other := w.member(), fmt.Sprint("by hand ", w.rng.IntN(3))
	kind := w.rng.IntN(4)
	w.redis.byHand(func(set map[string]float64) {
		switch kind {
		case 0:
			set[m] = float64(w.rng.IntN(100))
		case 1:
			delete(set, m)
		case 2:
			if _, ok := set[m]; ok {
				delete(set, m)
				set[other] = 7
			}
		case 3:
			set[other] = 7
		}
	})
}

// injure makes the board faulty.
func (b *modelBoard) injure(apply bool, member string, byScore bool) {
	_, _, there := b.Board.Score(member)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.arm = b.arm || apply; there && b.State().HasSum {
		b.changed, b.byScore, b.changedAt = member, byScore, time.Now()
	}
}

// calm ends all disturbances, and makes one change more.
func (w *modelEnv) calm() {
	w.log.Info("EVENT calm")
	w.over(time.Now().Add(time.Hour))
	if len(w.kafka.parts) != w.partitions {
		w.kafka.create(w.partitions) // as the board's status advises
	}
	for i := range w.kafka.parts {
		w.kafka.parts[i].stalled = time.Time{}
	}
	for i := range w.producers {
		w.producers[i].stalled = time.Time{}
	}
	b := w.side.boards.board
	b.mu.Lock()
	b.arm, b.changed = false, ""
	b.mu.Unlock()
	w.rate, w.lost = 0, 0
	w.run(3 * time.Second)
	w.change()
}

// heal waits until the board is open and equal to Redis, and expects it to stay so.
func (w *modelEnv) heal() {
	begun, within := time.Now(), modelHeals
	if w.far != nil {
		within += 2 * mirrorLag
	}
	for !w.equal() && !w.failed.Load() {
		if w.tick(); time.Since(begun) > within {
			w.fail("not open and equal after %v: %+v; Redis has %v", within, w.feed().describe(), w.redis.now.state)
		}
	}
	w.run(modelWalk)
	if w.far != nil { // until it is sure that Redis has lost what waits
		w.run(clockSkew)
	}
	closed := w.side.boards.closed()
	for range 20 {
		w.change()
		w.run(time.Duration(w.rng.IntN(40)) * time.Millisecond) // writers bring them out of order
	}
	w.run(modelWalk)
	if !w.equal() || closed != w.side.boards.closed() {
		w.fail("it was open and equal, and did not stay so: closed %d times more: %+v", w.side.boards.closed()-closed, w.feed().describe())
	}
}

// equal returns whether the board is open, proved and equal to Redis.
func (w *modelEnv) equal() bool {
	b, ok := w.side.boards.Get(modelBoardID)
	if !ok {
		return false
	}
	page, set := rankcache.One(context.Background(), b, rankcache.Query{Limit: 1000}), make(map[string]float64)
	for _, e := range page.Entries {
		set[rankcache.JoinData(e.Member, page.Data.Of(e.Member))] = e.Score
	}
	return page.HasSum && page.Seq == w.redis.now.state.Seq && page.Run == w.redis.now.state.Run && modelText(set) == w.redis.now.text
}
