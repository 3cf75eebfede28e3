package replay_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache"
	"rankcache/internal/lab/fill"
	"rankcache/internal/testkit"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/replay"
	"rankcache/wire"
)

const timeout = 60 * time.Second

// env is a Redis and a Kafka with boards in them, and does what a writer does.
type env struct {
	t      testing.TB
	kafka  string
	redis  *redis.Client
	names  wire.Names
	client *kgo.Client
	// still reports that Redis does not change while boards are opened, so that they
	// can be compared with it at that moment.
	still bool
}

func newEnv(t testing.TB, kafka string) *env { return newEnvOn(t, kafka, testkit.Redis(t)) }

func newEnvOn(t testing.TB, kafka, cache string) *env {
	c := redis.NewClient(&redis.Options{Addr: cache, ContextTimeoutEnabled: true})
	t.Cleanup(func() { c.Close() })
	return &env{t: t, kafka: kafka, redis: c, names: wire.DefaultNames(), still: true,
		client: testkit.KafkaClient(t, kafka, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))}
}

// board is one board of the env, written by the test alone.
type board struct {
	*env
	id    rankcache.BoardID
	seq   uint64
	parts int32
	// filled has the board's changes if a benchmark made them.
	filled *fill.Board
}

// newBoard makes a board with a topic of so many partitions; 0 for no topic.
func (e *env) newBoard(partitions int32, configs map[string]string) *board {
	b := &board{env: e, id: rankcache.BoardID(testkit.Name(e.t)), parts: partitions}
	if partitions > 0 {
		testkit.CreateTopic(e.t, e.kafka, b.topic(), partitions, configs)
	}
	return b
}

func (b *board) topic() string { return b.names.Topic(b.id) }

// incr applies a change to Redis and returns its update.
func (b *board) incr(member string, delta float64) wire.Update {
	b.t.Helper()
	return b.change(wire.OpIncr, member, delta)
}

// remove is incr for a delete.
func (b *board) remove(member string) wire.Update {
	b.t.Helper()
	return b.change(wire.OpDelete, member, 0)
}

// change applies a change to Redis and returns its update.
func (b *board) change(op wire.Op, member string, delta float64) wire.Update {
	b.t.Helper()
	u := testkit.ChangeBoard(b.t, b.redis, b.names, b.id, op, member, delta)
	b.seq = u.Seq
	return u
}

// state returns the board's state in Redis.
func (b *board) state() rankcache.State {
	b.t.Helper()
	return testkit.BoardState(b.t, b.redis, b.names, b.id)
}

// gifts returns the updates of n random changes, made in Redis.
func (b *board) gifts(n, members int) []wire.Update {
	b.t.Helper()
	us := make([]wire.Update, n)
	for i := range us {
		if member := fmt.Sprintf("m%d", rand.IntN(members)); rand.IntN(10) == 0 {
			us[i] = b.remove(member)
		} else {
			us[i] = b.incr(member, float64(rand.IntN(100)))
		}
	}
	return us
}

// produce writes updates to the board's topic, each member's to one partition.
func (b *board) produce(us ...wire.Update) {
	b.t.Helper()
	b.send(b.client, us...)
}

func (b *board) send(client *kgo.Client, us ...wire.Update) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	b.check(client.ProduceSync(ctx, b.records(us...)...).FirstErr())
}

func (b *board) records(us ...wire.Update) []*kgo.Record {
	rs := make([]*kgo.Record, len(us))
	for i := range us {
		rs[i] = &kgo.Record{Topic: b.topic(), Key: []byte(us[i].Member), Value: wire.AppendUpdate(nil, &us[i]),
			Partition: int32(len(us[i].Member)+int(us[i].Member[len(us[i].Member)-1])) % b.parts}
	}
	return rs
}

func (e *env) check(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// set adapts localboard, as cmd does, and records what was opened and closed.
type set struct {
	*localboard.Boards
	wrap    func(*localboard.Board) replay.Board // may be nil
	prepare func(replay.Board)                   // nil: nothing to do
	opened  func(rankcache.BoardID)
	opening sync.Mutex // held while a board is opened and looked at; taken last
	mu      sync.Mutex // guards events
	events  []string
}

func (s *set) Create(id rankcache.BoardID) replay.Board {
	if s.wrap != nil {
		return s.wrap(s.Boards.Create(id))
	}
	return s.Boards.Create(id)
}

func (s *set) Prepare(_ context.Context, b replay.Board) {
	if s.prepare != nil {
		s.prepare(b)
	}
}

func (s *set) Open(id rankcache.BoardID) {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.note("open " + string(id))
	s.Boards.Open(id)
	s.opened(id)
}

func (s *set) Close(id rankcache.BoardID) {
	s.note("close " + string(id))
	s.Boards.Close(id)
}

func (s *set) note(event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event)
}

func (s *set) noted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// redisOrigin adapts origin, as cmd does.
type redisOrigin struct{ *origin.Origin }

func (o redisOrigin) Sample(ctx context.Context, b rankcache.BoardID, members []string, random int) (replay.Sample, error) {
	s, err := o.Origin.Sample(ctx, b, members, random)
	return replay.Sample(s), err
}

// sidecar is a running Runner with its boards.
type sidecar struct {
	*replay.Runner
	env    *env
	boards *set
	reg    *prometheus.Registry
	stop   func()
}

// setup is what an option may change.
type setup struct {
	replay.Config
	origin  replay.Origin
	env     *env
	wrap    func(*localboard.Board) replay.Board
	prepare func(*sidecar, replay.Board)
}

type option func(*setup)

func deadline(d time.Duration) option { return func(s *setup) { s.Deadline = d } }

// totalIn makes the origin read the board's total from where.
func totalIn(kind replay.TotalSource, where string) option {
	return func(s *setup) {
		total, err := origin.ParseTotalSource(where)
		s.env.check(err)
		s.TotalSource = kind
		s.origin = redisOrigin{origin.New(s.env.redis, s.env.names, origin.WithTotalSource(total))}
	}
}

// start runs a Runner until the end of the test, or until stop.
func (e *env) start(boards []rankcache.BoardID, opts ...option) *sidecar {
	e.t.Helper()
	with := setup{replay.Config{Brokers: e.kafka, Names: e.names}, redisOrigin{origin.New(e.redis, e.names)}, e, nil, nil}
	for _, opt := range opts {
		opt(&with)
	}
	s := &sidecar{env: e, boards: &set{Boards: localboard.NewBoards(), wrap: with.wrap}, reg: prometheus.NewRegistry()}
	s.boards.opened = func(id rankcache.BoardID) {
		if err := s.equal(id); err != nil && e.still {
			e.t.Errorf("board %s was opened too early: %v", id, err)
		}
	}
	var err error
	s.Runner, err = replay.New(with.Config, s.boards, with.origin, slog.New(slog.NewTextHandler(e.t.Output(), nil)), s.reg)
	e.check(err)
	if with.prepare != nil {
		s.boards.prepare = func(b replay.Board) { with.prepare(s, b) }
	}
	s.Follow(boards)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			e.t.Errorf("Run: %v", err)
		}
	})
	e.t.Cleanup(s.stop)
	return s
}

func (s *sidecar) status(id rankcache.BoardID) rankcache.BoardStatus {
	for _, b := range s.Status() {
		if b.Board == id {
			return b
		}
	}
	return rankcache.BoardStatus{}
}

// waitOpen waits until the board is open and equals Redis. Afterwards the caller may
// change Redis: the comparison at the opening is over.
func (s *sidecar) waitOpen(id rankcache.BoardID) {
	s.env.t.Helper()
	testkit.Eventually(s.env.t, timeout, func() error { return s.equal(id) })
	s.boards.opening.Lock()
	defer s.boards.opening.Unlock()
}

// waitClosed waits until the board has been closed since it was first opened.
func (s *sidecar) waitClosed(id rankcache.BoardID) {
	s.env.t.Helper()
	testkit.Eventually(s.env.t, timeout, func() error {
		if !slices.Contains(s.boards.noted(), "close "+string(id)) {
			return fmt.Errorf("not closed: %+v", s.status(id))
		}
		return nil
	})
}

// equal returns nil if the board is open and equals Redis entry by entry.
func (s *sidecar) equal(id rankcache.BoardID) error {
	b, ok := s.boards.Get(id)
	if !ok {
		return fmt.Errorf("not open: %+v", s.status(id))
	}
	rows, err := s.env.redis.ZRevRangeWithScores(context.Background(), s.env.names.BoardKey(id), 0, -1).Result()
	if err != nil {
		return err
	}
	page := rowsOf(b, len(rows)+1)
	if len(page.Entries) != len(rows) {
		return fmt.Errorf("%d entries, Redis has %d", len(page.Entries), len(rows))
	}
	for i, r := range rows {
		if e := page.Entries[i]; e.Member != r.Member || e.Score != r.Score {
			return fmt.Errorf("rank %d: %v, Redis has %v", i+1, e, r)
		}
	}
	return nil
}

func (s *sidecar) waitReady() {
	s.env.t.Helper()
	testkit.Eventually(s.env.t, timeout, func() error {
		if ok, why := s.Ready(); !ok {
			return errors.New(why)
		}
		return nil
	})
}

func (s *sidecar) counter(name string, labels ...string) (sum float64) {
	s.env.t.Helper()
	families, err := s.reg.Gather()
	s.env.check(err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			has := 0
			for _, l := range m.Label {
				if slices.Contains(labels, l.GetValue()) {
					has++
				}
			}
			if has == len(labels) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func ids(boards ...*board) (all []rankcache.BoardID) {
	for _, b := range boards {
		all = append(all, b.id)
	}
	return all
}

// deleteRecords truncates the log of partition 0 at its beginning.
func (b *board) deleteRecords(before int64) {
	b.t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rt.Topic, rp.Offset, req.TimeoutMillis = b.topic(), before, 10_000
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(context.Background(), b.client)
	b.check(err)
	b.check(kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode))
}

// create creates the board's topic; an error if the broker still has one of the name.
func (b *board) create() error {
	req := kmsg.NewPtrCreateTopicsRequest()
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = b.topic(), b.parts, 1
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(context.Background(), b.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].ErrorCode)
}

// addPartitions gives the board's topic more partitions.
func (b *board) addPartitions(partitions int32) {
	b.t.Helper()
	req := kmsg.NewPtrCreatePartitionsRequest()
	rt := kmsg.NewCreatePartitionsRequestTopic()
	rt.Topic, rt.Count, req.TimeoutMillis = b.topic(), partitions, 10_000
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(context.Background(), b.client)
	b.check(err)
	b.check(kerr.ErrorForCode(resp.Topics[0].ErrorCode))
	b.parts = partitions
}

func TestMain(m *testing.M) { testkit.Main(m) }

// rowsOf returns the first rows of a board.
func rowsOf(b rankcache.Reader, limit int) rankcache.Answer {
	return rankcache.One(context.Background(), b, rankcache.Query{Limit: limit})
}
