package replay

import (
	"context"
	"fmt"
	"time"

	"rankcache"
	"rankcache/rooms"
	"rankcache/wire"
)

// Defaults of [Config].
const (
	DefaultPublishEvery = 10 * time.Millisecond
	DefaultPollEvery    = time.Second
	DefaultTotalsEvery  = time.Second
	DefaultAuditEvery   = 5 * time.Second
	DefaultAuditRows    = 2000
	DefaultDeadline     = 30 * time.Second
	// DefaultDeadlinePerUpdate is twenty times the time that a replay takes per update.
	DefaultDeadlinePerUpdate = 50 * time.Microsecond
	DefaultSaveEvery         = 30 * time.Second
	DefaultMaxStale          = 10 * time.Minute
)

// TotalSource names the value in Redis that is a board's total, the number of updates that a complete board has.
type TotalSource string

// Sources of totals.
const (
	// TotalSeq is the seq that every update carries. It is the only source with
	// which a load from Redis can be joined to the log.
	TotalSeq TotalSource = "seq"
	// TotalOrders is a count of the distinct order ids, for boards whose updates carry no seq.
	TotalOrders TotalSource = "orders"
	// TotalNone is no total at all: a board that was read to the end of its log opens when a sample agrees.
	TotalNone TotalSource = "none"
)

// Config configures a [Runner]. Zero values take the defaults.
type Config struct {
	Brokers string // bootstrap servers: host:port, separated by commas; [Runner.Run] needs one, or RedisLog
	// RedisLog is the log of changes in Redis, which is read in place of Kafka; nil: Kafka is. Log then tells that all
	// boards are in the topic [wire.LogKey], shared, with a First.
	RedisLog RedisLog
	Names    wire.Names
	// Log tells where a board's updates are, concurrently. Its answer may change: the board
	// then begins anew. Nil: each board has a topic of its own.
	Log func(rankcache.BoardID) rooms.Log
	// Kafka is passed to librdkafka as it is, and overrides our settings.
	Kafka       map[string]string
	TotalSource TotalSource
	// PublishEvery is the shortest time between two publications of a board.
	PublishEvery time.Duration
	// PollEvery is how often the boards' topics are looked up in Kafka, TotalsEvery how often the totals of all boards
	// are read from Redis, in one round trip: an answer's age reaches TotalsEvery. Both vary by a tenth.
	PollEvery, TotalsEvery time.Duration
	// States is where a keeper publishes what it has read of all boards; nil: nowhere. While it does, open boards with
	// seqs are compared with that, and no rows are.
	States States
	// Reached, if it is not nil, tells that Redis is a replica in another region than the writers', and up to when it
	// has what its master had; zero: unknown. Its lag is then no fault, and the ages of boards count from there. It is
	// called concurrently.
	Reached func() time.Time
	// AuditEvery is how often each open board without seqs is compared with Redis, give
	// or take a tenth; negative for never.
	AuditEvery time.Duration
	// AuditRows is how many rows per second, of all boards together, are compared with Redis; negative for none.
	AuditRows int
	// KafkaLogin, if it is not nil, calls set with each new user name and password for SASL, until ctx is done.
	KafkaLogin func(ctx context.Context, set func(username, password string) error)
	// KafkaAnswered, if it is not nil, is called at the end of each request about topics, and with
	// a time of 0 each error that the client reports by itself. It must not block.
	KafkaAnswered func(took time.Duration, err error)
	// A board that is not open after Deadline, plus DeadlinePerUpdate for each
	// record in the logs to be read, is given up to Redis. Its gate keeps trying.
	Deadline          time.Duration
	DeadlinePerUpdate time.Duration
	// Files keeps boards over a restart; nil: nothing is kept. It takes boards
	// with seqs only. SaveEvery is how often each is saved, give or take a tenth.
	Files     Files
	SaveEvery time.Duration
	// Snapshots are the fleet's: a board begins with the newer of its file and its snapshot. Nil: there are none.
	Snapshots Snapshots
	// Memory, if it is not nil, waits until there is memory to fill a board, which lasts
	// until done is called. Its error is ctx's.
	Memory func(ctx context.Context, board rankcache.BoardID) (done func(), err error)
	// MaxStale is the greatest age at which a saved board is answered from while Redis can't be read.
	MaxStale time.Duration
	// BoardLabel returns the value of a board's label "board" in metrics, concurrently;
	// those of boards with the same one are combined. Nil: the id.
	BoardLabel func(rankcache.BoardID) string
}

func (c Config) withDefaults() (Config, error) {
	orDefault(&c.TotalSource, TotalSeq)
	orDefault(&c.PublishEvery, DefaultPublishEvery)
	orDefault(&c.PollEvery, DefaultPollEvery)
	orDefault(&c.TotalsEvery, DefaultTotalsEvery)
	orDefault(&c.AuditEvery, DefaultAuditEvery)
	orDefault(&c.AuditRows, DefaultAuditRows)
	orDefault(&c.Deadline, DefaultDeadline)
	orDefault(&c.DeadlinePerUpdate, DefaultDeadlinePerUpdate)
	orDefault(&c.SaveEvery, DefaultSaveEvery)
	orDefault(&c.MaxStale, DefaultMaxStale)
	if names := c.Names; c.Log == nil {
		c.Log = func(id rankcache.BoardID) rooms.Log { return rooms.Log{Topic: names.Topic(id)} }
	}
	switch {
	case c.TotalSource != TotalSeq && c.TotalSource != TotalOrders && c.TotalSource != TotalNone:
		return c, fmt.Errorf("total %q: want %s, %s or %s", c.TotalSource, TotalSeq, TotalOrders, TotalNone)
	case c.Reached != nil && c.TotalSource != TotalSeq:
		return c, fmt.Errorf("total %q: a replica's lag can be told from a loss by seqs only: want %s", c.TotalSource, TotalSeq)
	case min(c.PublishEvery, c.PollEvery, c.TotalsEvery, c.Deadline, c.DeadlinePerUpdate, c.SaveEvery, c.MaxStale) < 0:
		return c, fmt.Errorf("a replay interval is negative: want a duration, or 0 for the default")
	}
	return c, c.Names.Check()
}

func orDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// newest returns the highest total that the board has seen proof of.
func newest(total TotalSource, p rankcache.Progress) uint64 {
	if total == TotalSeq {
		return p.Highest
	}
	return p.Applied()
}
