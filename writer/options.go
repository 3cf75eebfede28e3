package writer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/kafka"
	"rankcache/rooms"
	"rankcache/wire"
)

// Defaults of orders. A hash of an order life should not have more than about 100,000
// order ids, as its expiry and its move to another server stop Redis.
const (
	DefaultOrderLife    = time.Hour
	DefaultOrderBuckets = 4
)

// Limits of orders.
const (
	minOrderLife    = time.Minute
	maxOrderLife    = 366 * 24 * time.Hour
	maxOrderBuckets = 256 // a script that prepares a board names twice as many keys
)

// DefaultGroup is the consumer group that all writers of one command topic share.
const DefaultGroup = "rankcache-writer"

// PostTimeout bounds one posted command, Redis and Kafka together: as long, a failover
// or an adoption delays a post instead of failing it.
const PostTimeout = 5 * time.Second

// Tiers are the settings of the rooms file. It must be safe for concurrent use.
type Tiers interface {
	// Mode returns the mode of a board, or of the room that a command names ("" for none).
	Mode(board rankcache.BoardID, room string) rooms.Mode
	// Boards returns the boards that have a mode: those that rooms and rules name, and those of classes of now.
	Boards(mode rooms.Mode) []rankcache.BoardID
	// File returns the rooms file in force, whose classes commands may name; never nil.
	File() *rooms.File
}

// Options configure a [Writer].
type Options struct {
	Redis redis.UniversalClient // closed by the caller
	Names wire.Names
	Tiers Tiers
	// Kafka holds librdkafka settings, at least bootstrap.servers. Empty, with LogSize: there is no Kafka, commands are
	// posted alone, and classes that need Kafka ([rooms.File.CheckWithoutKafka]) are not written.
	Kafka map[string]string
	// LogSize has the changes of followed boards in a stream of Redis ([wire.LogKey]) of about so many bytes, of each
	// server if there are several, no cluster; 0: none.
	LogSize int64
	// KafkaLogin, if it is not nil, calls set with each new user name and password for SASL, until ctx is done.
	KafkaLogin func(ctx context.Context, set func(username, password string) error)
	Group      string // consumer group; empty: DefaultGroup
	// GroupInstance names this writer among those of the group, and stays the same when it restarts: the
	// restarted one then has its partitions again at once, instead of when the session of the dead
	// one times out. Two that run at the same time need two names. Empty: none.
	GroupInstance string
	// PublishAll publishes the updates of all boards, not only of super-hot ones.
	PublishAll bool
	// BoardLife is the least time from the last change of a board without a period until it expires, together with its
	// other keys; it is at most an eighth longer, and a second. 0: never, because a board that vanishes is worse than
	// one that stays. The keep of a class wins.
	BoardLife time.Duration
	// OrderLife is how long an order id is known at least, and OrderBuckets over how many hashes the order ids of one
	// life are spread. Both hold for new boards. 0: DefaultOrderLife, DefaultOrderBuckets.
	OrderLife    time.Duration
	OrderBuckets int
	// MemberChanges is how many changes of one member posts may make in a minute, on all boards together; 0: any.
	MemberChanges int
	Topics        Topics
	// Posted, if it is not nil, is called with each post that has succeeded before it is answered, concurrently: the
	// state is one that the board has been through, and that the change is in.
	Posted     func(board rankcache.BoardID, member string, s rankcache.State)
	Process    func() any            // what GET /v1/status shows as process; nil: nothing
	Log        *slog.Logger          // nil: silent
	Registerer prometheus.Registerer // nil: unregistered
}

// Topics configures how missing topics are created.
type Topics struct {
	// Partitions of a topic that boards of a class share, each in one. 0: one, as of a board's own topic.
	Partitions        int
	Replication       int               // factor. 0: the broker's default.
	Settings          map[string]string // of a board's topic, which override [DefaultTopicSettings]
	CommandPartitions int               // of the command topic. 0: it is not created.
	LedgerPartitions  int               // of the ledger's topic. 0: DefaultLedgerPartitions.
}

// DefaultTopicSettings keep all updates while the topic exists: a sidecar can rebuild the board from the first.
func DefaultTopicSettings() map[string]string {
	return map[string]string{"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
}

const DefaultLedgerPartitions = 12 // let as many consumers share the ledger's topic

// check returns the options with defaults set, or an error that names the wrong one.
func (opts Options) check() (Options, error) {
	if opts.Redis == nil || opts.Tiers == nil {
		return opts, errors.New("writer: Redis and Tiers are required")
	}
	if opts.hasKafka() || opts.LogSize <= 0 {
		if err := kafka.Check(opts.Kafka, "group.instance.id", "enable.idempotence"); err != nil {
			return opts, err
		}
	}
	if err := opts.Names.Check(); err != nil {
		return opts, err
	}
	if opts.BoardLife < 0 {
		return opts, fmt.Errorf("board life %v: want 0 or more", opts.BoardLife)
	}
	if opts.MemberChanges < 0 {
		return opts, fmt.Errorf("member changes %d: want 0 or more", opts.MemberChanges)
	}
	if err := opts.checkOrders(); err != nil {
		return opts, err
	}
	if opts.Group == "" {
		opts.Group = DefaultGroup
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return opts, nil
}

func (opts *Options) hasKafka() bool { return len(opts.Kafka) > 0 }

// logs names where the log of changes is.
func (opts *Options) logs() string {
	switch {
	case opts.LogSize <= 0:
		return "kafka"
	case opts.hasKafka():
		return "both"
	}
	return "redis"
}

func (opts *Options) checkOrders() error {
	if opts.OrderLife == 0 {
		opts.OrderLife = DefaultOrderLife
	}
	if opts.OrderBuckets == 0 {
		opts.OrderBuckets = DefaultOrderBuckets
	}
	if l := opts.OrderLife; l < minOrderLife || l > maxOrderLife || l%time.Second != 0 {
		return fmt.Errorf("order life %v: want %v to %v in whole seconds", l, minOrderLife, maxOrderLife)
	}
	if n := opts.OrderBuckets; n < 1 || n > maxOrderBuckets {
		return fmt.Errorf("%d order buckets: want 1 to %d", n, maxOrderBuckets)
	}
	return nil
}

// commonSettings apply to consumer and producer.
var commonSettings = kafka.Settings{
	"client.id":                          "rankcache-writer",
	"topic.metadata.refresh.interval.ms": "10000", // finds topics that are created later
}

// producerSettings apply to the producer of updates. It retries for
// message.timeout.ms, which covers the restart of a broker.
var producerSettings = kafka.Settings{
	"enable.idempotence": "true",
	"acks":               "all",
	"linger.ms":          "2", // a batch of commands is enqueued in less
	"compression.type":   "lz4",
	"message.timeout.ms": "300000",
	"partitioner":        "murmur2_random", // as the Java client places keys
	// A topic is created before its first update, so an unknown one was deleted and is to be created again soon.
	"topic.metadata.propagation.max.ms": "2000",
	"go.delivery.report.fields":         "none", // the opaque value is its index
}

// newClient returns a consumer for a member of the group.
func (opts *Options) newClient() (*kafka.Consumer, error) {
	first := kafka.Settings{"auto.offset.reset": "earliest", // a command is never skipped
		"enable.partition.eof": "true"}
	if opts.GroupInstance != "" {
		first["group.instance.id"] = opts.GroupInstance
	}
	return kafka.NewConsumer(kafka.LogTo(opts.Log), kafka.Member(opts.Group), commonSettings, first, opts.Kafka)
}
