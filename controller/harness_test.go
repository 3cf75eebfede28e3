package controller

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// classFile has a class of each way to name topics.
const classFile = `classes:
- {name: gift, board: "NAME:{zone}:{period}", period: 30m, grace: 5s, keep: 1h}
- {name: day, board: "NAMEd.{zone}:{period}", period: day, grace: 5s, keep: 1h}
- {name: fans, board: "NAMEf:{zone}", period: none}
- {name: paid, board: "NAMEp:{period}", period: day, grace: 0s, keep: 1h, ledger: true}
- {name: ladder, board: "NAMEs:{period}", keep: 1h, seasons: [{tag: s1, from: 2026-11-01T00:00:00Z, to: 2026-11-22T05:00:00Z}, {tag: s2, from: 2026-11-23T05:00:00Z, to: 2126-11-23T05:00:00Z}]}
- {name: lasting, board: "NAMEl:{period}", period: day, grace: 0s, keep: 1h, ops: [incr], durable: true}
`

// tiers is a Tiers with one file.
type tiers struct {
	file   *rooms.File
	wanted rankcache.BoardID // super-hot
}

func (t *tiers) File() *rooms.File                     { return t.file }
func (t *tiers) Resolved() bool                        { return true }
func (t *tiers) Boards(rooms.Mode) []rankcache.BoardID { return nil }
func (t *tiers) Mode(b rankcache.BoardID, _ string) rooms.Mode {
	if b == t.wanted {
		return rooms.ModeSuperHot
	}
	return rooms.ModeNone
}

// fixture is a term of leading whose clock the test sets, with names of its own.
type fixture struct {
	*term
	name   string // begins the ids of its classes' boards
	broker string
	tiers  *tiers
	redis  *redis.Client
	ahead  time.Duration // of its clock
	log    strings.Builder
}

// newFixture returns a term whose command topic has two partitions, unless the settings
// are nil: then there is none.
func newFixture(t *testing.T, broker string, settings map[string]string, change func(*Options)) *fixture {
	t.Helper()
	f := &fixture{name: strings.ReplaceAll(testkit.Name(t), "_", "-"), broker: broker}
	f.redis = client(t, testkit.Redis(t))
	file, err := rooms.Parse([]byte(strings.ReplaceAll(classFile, "NAME", f.name)))
	must(t, err)
	f.tiers = &tiers{file: file}
	names := wire.DefaultNames()
	names.Ends, names.Controller, names.AbsentTopics = f.name+"-ends", f.name+"-controller", f.name+"-absent"
	names.Commands, names.Finals = f.name+"-commands", f.name+"-finals"
	if settings != nil {
		testkit.CreateTopic(t, broker, names.Commands, 2, settings)
	}
	o := Options{Redis: f.redis, Names: names, Tiers: f.tiers, Kafka: map[string]string{"bootstrap.servers": broker}, Group: f.name, ID: "a",
		TopicKeep: 24 * time.Hour, Now: func() time.Time { return time.Now().Add(f.ahead) }, Log: slog.New(slog.NewTextHandler(&f.log, nil)), Registerer: prometheus.NewRegistry()}
	if change != nil {
		change(&o)
	}
	f.redis, _ = o.Redis.(*redis.Client)
	c, err := New(o)
	must(t, err)
	k, err := openKafka(c.opts)
	must(t, err)
	k.margin = 0
	t.Cleanup(k.close)
	f.term = newTerm(c, k)
	if settings != nil {
		f.joinGroup(t)
	}
	return f
}

var brokersTime = map[string]string{"message.timestamp.type": "LogAppendTime"}

// board makes the board of a class's period that t is in, in Redis and in the index.
func (f *fixture) board(t *testing.T, class string, at time.Time, life wire.Life) rankcache.BoardID {
	t.Helper()
	kind := f.tiers.file.Class(class)
	dims := map[string]string{}
	for _, name := range kind.Dimensions() {
		dims[name] = "7"
	}
	b, err := kind.At(dims, at)
	must(t, err)
	end := b.Period.End
	meta := wire.AppendMeta(nil, &wire.Meta{Life: life, State: rankcache.State{Run: 1, Seq: 2, Sum: 3, HasSum: true}, Members: 1, End: uint64(end.UnixMilli()), Buckets: 4})
	must(t, f.redis.Set(t.Context(), f.opts.Names.MetaKey(b.ID), meta, time.Hour).Err())
	must(t, f.redis.ZAdd(t.Context(), f.opts.Names.Ends, redis.Z{Score: float64(end.UnixMilli()), Member: string(b.ID)}).Err())
	return b.ID
}

// meta returns a board's meta.
func (f *fixture) meta(t *testing.T, b rankcache.BoardID) wire.Meta {
	t.Helper()
	m, err := wire.ParseMeta(f.opts.Redis.Get(t.Context(), f.opts.Names.MetaKey(b)).Val())
	must(t, err)
	return m
}

// indexed returns the boards of the index.
func (f *fixture) indexed(t *testing.T) []string {
	t.Helper()
	return f.opts.Redis.ZRange(t.Context(), f.opts.Names.Ends, 0, -1).Val()
}

// joinGroup makes the writers' group: kfake takes no offsets of one that it does not know.
func (f *fixture) joinGroup(t *testing.T) {
	t.Helper()
	assigned := make(chan struct{}, 10)
	cl := testkit.KafkaClient(t, f.broker, kgo.ConsumerGroup(f.opts.Group), kgo.ConsumeTopics(f.opts.Names.Commands),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { assigned <- struct{}{} }))
	select {
	case <-assigned:
	case <-t.Context().Done():
	}
	cl.Close()
}

// commit has the writers' group commit offsets, by partition.
func (f *fixture) commit(t *testing.T, next ...int64) { f.commitNoted(t, "", next...) }

// commitNoted is commit with a note beside each offset.
func (f *fixture) commitNoted(t *testing.T, note string, next ...int64) {
	t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = f.opts.Group, -1
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = f.opts.Names.Commands
	for i, offset := range next {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.Metadata = int32(i), offset, &note
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(t.Context(), testkit.KafkaClient(t, f.broker, kgo.MaxVersions(kversion.V3_0_0()))) // later ones name topics by id
	must(t, err)
	for _, p := range resp.Topics[0].Partitions {
		must(t, kerr.ErrorForCode(p.ErrorCode))
	}
}

// look looks at boards once and fails the test after an error.
func (f *fixture) look(t *testing.T) {
	t.Helper()
	must(t, f.closeBoards(t.Context()))
}

// topicsLeft looks at topics once and returns those of the fixture's boards that are left.
func (f *fixture) topicsLeft(t *testing.T) (left []string) {
	t.Helper()
	must(t, f.topics.lookAtTopics(t.Context()))
	return slices.DeleteFunc(f.allTopics(t), func(name string) bool { return name == f.opts.Names.Commands })
}

func (f *fixture) allTopics(t *testing.T) (names []string) {
	md, err := kmsg.NewPtrMetadataRequest().RequestWith(t.Context(), testkit.KafkaClient(t, f.broker))
	must(t, err)
	for _, topic := range md.Topics {
		names = append(names, *topic.Topic)
	}
	return names
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
