package writer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"rankcache"
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

// Tiers are the settings of the rooms file. It must be safe for concurrent use.
type Tiers interface {
	// Mode returns the mode of a board, or of the room that a command names ("" for none).
	Mode(board rankcache.BoardID, room string) rooms.Mode
	// File returns the rooms file in force, whose classes commands may name; never nil.
	File() *rooms.File
}

// Options configure a [Writer].
type Options struct {
	Redis redis.UniversalClient // closed by the caller
	Names wire.Names
	Tiers Tiers
	// Kafka holds librdkafka settings, at least bootstrap.servers.
	Kafka map[string]string
	// KafkaLogin, if it is not nil, calls set with each new user name and password for
	// SASL, until ctx is done.
	KafkaLogin func(ctx context.Context, set func(username, password string) error)
	Group      string // consumer group; empty: DefaultGroup
	// GroupInstance names this writer among those of the group, and stays the same when it restarts: the
	// restarted one then has its partitions again at once, instead of when the session of the dead
	// one times out. Two that run at the same time need two names. Empty: none.
	GroupInstance string
	// PublishAll publishes the updates of all boards, not only of super-hot ones.
	PublishAll bool
	// LedgerAll publishes the updates of all boards for the ledger, not only those of
	// classes that ask for it.
	LedgerAll bool
	// BoardLife is the least time from the last change of a board without a period until it
	// expires, together with its other keys; it is at most an eighth longer, and a second.
	// 0: never, because a board that vanishes is worse than one that stays. The keep of a
	// class wins.
	BoardLife time.Duration
	// OrderLife is how long an order id is known at least, and OrderBuckets over how
	// many hashes the order ids of one life are spread. Both hold for new boards. 0:
	// DefaultOrderLife, DefaultOrderBuckets.
	OrderLife    time.Duration
	OrderBuckets int
	Topics       Topics
	Process      func() any            // what GET /v1/status shows as process; nil: nothing
	Log          *slog.Logger          // nil: silent
	Registerer   prometheus.Registerer // nil: unregistered
}

// check returns the options with defaults set, or an error that names the wrong
// one.
func (opts Options) check() (Options, error) {
	if opts.Redis == nil || opts.Tiers == nil {
		return opts, errors.New("writer: Redis and Tiers are required")
	}
	if err := settings(opts.Kafka).check(); err != nil {
		return opts, err
	}
	if err := opts.Names.Check(); err != nil {
		return opts, err
	}
	if opts.BoardLife < 0 {
		return opts, fmt.Errorf("board life %v: want 0 or more", opts.BoardLife)
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

// settings are librdkafka settings by name.
type settings map[string]string

// commonSettings apply to every client.
var commonSettings = settings{
	"client.id":                          "rankcache-writer",
	"log.connection.close":               "false", // brokers close idle connections all the time
	"enable.metrics.push":                "false",
	"socket.keepalive.enable":            "true",
	"topic.metadata.refresh.interval.ms": "10000", // finds topics that are created later
}

// consumerSettings apply to the consumer of commands.
var consumerSettings = settings{
	"auto.offset.reset":             "earliest", // a command is never skipped
	"partition.assignment.strategy": "cooperative-sticky",
	"isolation.level":               "read_committed",
	"session.timeout.ms":            "10000", // another writer takes over this long after a crash
	"heartbeat.interval.ms":         "3000",
	"queued.max.messages.kbytes":    "16384", // memory outside of Go's heap
	"fetch.queue.backoff.ms":        "10",    // the default of 1 s limits the rate
}

// producerSettings apply to the producer of updates. It retries for
// message.timeout.ms, which covers the restart of a broker.
var producerSettings = settings{
	"acks":               "all",
	"linger.ms":          "2", // a batch of commands is enqueued in less
	"compression.type":   "lz4",
	"message.timeout.ms": "300000",
	"partitioner":        "murmur2_random", // as the Java client places keys
	// A topic is created before its first update, so an unknown one was deleted and
	// is to be created again soon.
	"topic.metadata.propagation.max.ms": "2000",
}

// owned are the settings on which the guarantees of this package depend.
var owned = settings{
	"group.id":                 "",      // see Options.Group
	"group.instance.id":        "",      // see Options.GroupInstance
	"enable.auto.commit":       "false", // committed when the updates are acknowledged
	"enable.auto.offset.store": "false",
	"enable.idempotence":       "true",
}

// check rejects settings that operators can't set.
func (s settings) check() error {
	if s["bootstrap.servers"] == "" {
		return errors.New("kafka setting bootstrap.servers is missing: want host:port[,host:port]")
	}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if _, ours := owned[key]; ours || strings.HasPrefix(key, "go.") {
			return fmt.Errorf("kafka setting %s is set by rankcache: remove it", key)
		}
	}
	return nil
}

// merge returns a client's configuration; later layers win.
func merge(layers ...settings) *kafka.ConfigMap {
	conf := kafka.ConfigMap{"go.logs.channel.enable": true}
	for _, layer := range layers {
		for key, value := range layer {
			conf[key] = value
		}
	}
	return &conf
}

func (s settings) consumer(group, instance string) *kafka.ConfigMap {
	ours := settings{"group.id": group, "enable.auto.commit": "false", "enable.auto.offset.store": "false"}
	if instance != "" {
		ours["group.instance.id"] = instance
	}
	return merge(commonSettings, consumerSettings, s, ours)
}

func (s settings) producer() *kafka.ConfigMap {
	conf := merge(commonSettings, producerSettings, s, settings{"enable.idempotence": "true"})
	(*conf)["go.delivery.report.fields"] = "none" // the opaque value is its index
	return conf
}
