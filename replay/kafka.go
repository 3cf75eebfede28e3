package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"rankcache/internal/health"
	"rankcache/internal/kafka"
)

const (
	// requestTimeout bounds a request to Kafka about topics.
	requestTimeout = 3 * time.Second
	// firstNap is how long nobody polls after a poll that found nothing. Each further nap is twice as long as the one
	// before, up to shortNap, and after so long without anything, quietAfter, up to lastNap.
	firstNap, shortNap, lastNap = time.Millisecond, 2 * time.Millisecond, 8 * time.Millisecond
	quietAfter                  = 500 * time.Millisecond
)

// settings of librdkafka.
var settings = map[string]string{
	// Partitions are assigned explicitly. librdkafka requires a group name; no
	// consumer joins the group and nothing is committed.
	"group.id":                 "rankcache-replay",
	"enable.auto.commit":       "false",
	"enable.auto.offset.store": "false",
	"auto.offset.reset":        "earliest",
	"isolation.level":          "read_committed",
	// The end of a log that ends in control records shows only as an EOF.
	"enable.partition.eof": "true",
	// A full queue otherwise pauses fetching for a second, which limits reading
	// to the queue's 100,000 records a second.
	"fetch.queue.backoff.ms": "10",
	// A fetch waits at the broker as long as there is nothing new, not longer. Requests about topics would wait behind
	// it, and have a client of their own; a new partition does wait, as there is one fetch under way at each broker.
	"fetch.wait.max.ms":      "500",
	"fetch.error.backoff.ms": "100",
	// Memory that Go's limit does not count. By default one fetch brings up to 50 MB,
	// whatever the queue may hold: with 28 partitions 220 MiB were measured, with these
	// settings 30, at the same speed. A queued message takes 300 bytes beside its own.
	"fetch.max.bytes": "2097152",
	// librdkafka takes one partition's records apart without a pause: 6 ms for its default
	// of 1 MB, 1.2 ms with this, during which a reader on the same core waits.
	"max.partition.fetch.bytes":  "262144",
	"queued.max.messages.kbytes": "4096",
	"queued.min.messages":        "10000", // of each partition
	"reconnect.backoff.max.ms":   "1000",
	"client.id":                  "rankcache",
}

// ConsumerSettings returns the settings of librdkafka with which topics are read.
func ConsumerSettings() kafka.Settings { return maps.Clone(settings) }

// client is two or more of librdkafka's: those that read, and one that asks about topics. Nothing waits in librdkafka
// all the time: a call of C keeps the processor of its goroutine until the Go runtime takes it away, up to 10 ms later,
// and what is ready to run there waits as long. So polls don't wait, and the log, which a goroutine of the wrapper
// waits for, is read only for who asks for it.
type client struct {
	*readers
	asker    *kafka.Consumer // never has partitions
	cfg      Config
	answered func(took time.Duration, err error)
	login    login
	metrics  *metrics
	log      *slog.Logger

	records [batchItems]kafka.Record
	cause   error // the last error of librdkafka's own
}

func newClient(cfg Config, m *metrics, log *slog.Logger) (*client, error) {
	if cfg.Brokers == "" && cfg.Kafka["bootstrap.servers"] == "" {
		return nil, errors.New("no Kafka brokers: name at least one as host:port")
	}
	c := &client{cfg: cfg, answered: cfg.KafkaAnswered, metrics: m, log: log}
	if c.answered == nil {
		c.answered = func(time.Duration, error) {}
	}
	var lines kafka.Log
	if cfg.Kafka["debug"] != "" || cfg.Kafka["log_level"] != "" {
		lines = kafka.LogTo(log)
	}
	c.login.user.Store(new(cfg.Kafka["sasl.username"]))
	begin := func() (*kafka.Consumer, error) {
		return kafka.NewConsumer(lines, settings, kafka.Settings{"bootstrap.servers": cfg.Brokers}, cfg.Kafka)
	}
	var err error
	if c.readers, err = newReaders(begin); err != nil {
		return nil, err
	}
	if c.asker, err = begin(); err != nil {
		return nil, errors.Join(err, c.readers.close())
	}
	return c, nil
}

func (c *client) close() error { return errors.Join(c.readers.close(), c.asker.Close()) }

// run sets new logins.
func (c *client) run(ctx context.Context) error {
	if c.cfg.KafkaLogin != nil {
		c.cfg.KafkaLogin(ctx, c.setLogin)
	}
	return nil
}

// fill polls until the batch is full or nothing more is there.
func (c *client) fill(to *consumer) (events int, err error) {
	for events < batchItems {
		n, other := c.poll(c.records[:batchItems-events])
		for i := range c.records[:n] {
			r := &c.records[i]
			to.add(r.Topic, r.Partition, item{offset: r.Offset, value: r.Value})
		}
		clear(c.records[:n]) // releases their memory
		events += n
		switch ev := other.(type) {
		case kafka.PartitionEOF:
			to.add(*ev.Topic, ev.Partition, item{offset: int64(ev.Offset), kind: itemEnd})
		case kafka.Error:
			if err := c.failed(ev); err != nil {
				return events, err
			}
		default:
			return events, nil
		}
		events++
	}
	return events, nil
}

// arrived returns nil: the client's events wake nobody (see firstNap).
func (c *client) arrived() <-chan struct{} { return nil }

func (c *client) failed(err error) error {
	if kafka.Fatal(err) {
		return fmt.Errorf("kafka consumer: %w", err)
	}
	c.metrics.kafkaErrors.Inc()
	if kafka.Follows(err) { // it was logged by its cause, with the broker's address
		c.answered(0, cmp.Or(c.cause, c.login.explain(err)))
		return nil
	}
	err = c.login.explain(err)
	c.cause = err
	c.answered(0, err)
	c.log.Warn("kafka consumer", "err", err)
	return nil
}

// poll stores in into records that are there now. See [kafka.Consumer.Records].
func (c *client) poll(into []kafka.Record) (n int, other kafka.Event) {
	if n, other = c.readers.poll(into); n == 0 && other == nil {
		other = c.asker.Poll(0) // an error, if anything
	}
	if err, ok := other.(kafka.Error); ok {
		c.login.note(err)
	}
	return n, other
}

// tell reports the end of a request that began at a time, unless its caller gave it up.
func (c *client) tell(ctx context.Context, begun time.Time, err *error) {
	if !errors.Is(ctx.Err(), context.Canceled) {
		*err = c.login.explain(*err)
		c.answered(time.Since(begun), c.login.refusal(*err))
	}
}

// setLogin has new connections log in with another user name and password.
func (c *client) setLogin(username, password string) error {
	c.login.user.Store(&username)
	return errors.Join(c.readers.setLogin(username, password), c.asker.SetSaslCredentials(username, password))
}

func (c *client) describe(ctx context.Context, names []string) (infos []topicInfo, err error) {
	defer c.tell(ctx, time.Now(), &err)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	topics, err := c.asker.Describe(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("describe kafka topics: %w; check the brokers' addresses and that they run", err)
	}
	for _, d := range topics {
		switch code := d.Error.Code(); code {
		case kafka.ErrNoError:
			infos = append(infos, topicInfo{d.Name, d.TopicID.String(), len(d.Partitions)})
		case kafka.ErrUnknownTopicOrPart:
			infos = append(infos, topicInfo{name: d.Name})
		default:
			err = fmt.Errorf("describe kafka topic %s: %w", d.Name, d.Error)
		}
	}
	return infos, err
}

func (c *client) offsets(ctx context.Context, parts []*partition) (map[*partition]offsets, error) {
	var lows, highs map[*partition]int64
	var both errgroup.Group
	both.Go(func() (err error) {
		lows, err = c.listOffsets(ctx, parts, kafka.First)
		return err
	})
	both.Go(func() (err error) {
		highs, err = c.listOffsets(ctx, parts, kafka.End)
		return err
	})
	err := both.Wait()
	found := make(map[*partition]offsets, len(parts))
	for p, high := range highs {
		if low, ok := lows[p]; ok {
			found[p] = offsets{low, high}
		}
	}
	return found, err
}

func (c *client) since(ctx context.Context, parts []*partition, at time.Time) (map[*partition]int64, error) {
	return c.listOffsets(ctx, parts, kafka.Since(at))
}

func (c *client) ends(ctx context.Context, parts []*partition) (map[*partition]int64, error) {
	return c.listOffsets(ctx, parts, kafka.End)
}

// listOffsets reads offsets at the consumer's own isolation level: the end of a
// reader of committed records is before the first open transaction. The offset of a time is
// that of the first record since then, or the end that the partition had when it was read.
func (c *client) listOffsets(ctx context.Context, parts []*partition, spec kafka.OffsetSpec) (found map[*partition]int64, err error) {
	defer c.tell(ctx, time.Now(), &err)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := c.asker.ListOffsets(ctx, topicPartitions(parts), spec, kafka.ReadCommitted)
	if err != nil {
		return nil, fmt.Errorf("list kafka offsets: %w", err)
	}
	return offsetsOf(parts, answer, spec >= 0)
}

// offsetsOf finds the partitions in an answer.
func offsetsOf(parts []*partition, answer map[kafka.Partition]kafka.OffsetResult, ofTime bool) (found map[*partition]int64, err error) {
	found = make(map[*partition]int64, len(parts))
	for _, p := range parts {
		info, answered := answer[kafka.Partition{Topic: p.topic.name, Number: p.number}]
		switch {
		case !answered:
		case info.Error.Code() != kafka.ErrNoError:
			err = fmt.Errorf("list kafka offsets of %s, partition %d: %w", p.topic.name, p.number, info.Error)
		case info.Offset >= 0:
			found[p] = int64(info.Offset)
		case ofTime: // there is no record so late
			found[p] = p.high
		default:
			err = fmt.Errorf("list kafka offsets of %s, partition %d: its leader has not answered", p.topic.name, p.number)
		}
	}
	return found, err
}

// login tells why Kafka does not answer if it refuses our login, as only a polled error does. Concurrent use is safe.
type login struct {
	user    atomic.Pointer[string]
	refused atomic.Pointer[string] // why the last connection failed, if that was a refused login
}

const saslFailure = "SASL authentication error: " // in librdkafka's errors about logins

// note takes a polled error. A refused login may look like a closed connection; errors of errors change nothing.
func (l *login) note(err kafka.Error) {
	if _, why, ok := strings.Cut(err.Error(), saslFailure); ok {
		l.refused.Store(&why)
		return
	}
	switch err.Code() {
	case kafka.ErrTransport, kafka.ErrResolve, kafka.ErrSsl:
		l.refused.Store(nil)
	}
}

// explain returns err, or why the login failed if that is the cause. Without an err the login works.
func (l *login) explain(err error) error {
	why := l.refused.Load()
	if err == nil {
		l.refused.Store(nil)
		return nil
	}
	if why == nil || kafka.Fatal(err) {
		return err
	}
	user := ""
	if u := l.user.Load(); u != nil && *u != "" {
		user = " for user " + *u
	}
	return fmt.Errorf("kafka authentication failed%s: %s; check --kafka.sasl.username, --kafka.sasl.password and --kafka.sasl.mechanism", user, *why)
}

// refusal marks an error, which explain has returned, of a Kafka that refuses the user: waiting changes nothing.
func (l *login) refusal(err error) error {
	if err != nil && (l.refused.Load() != nil || kafka.Refused(err)) {
		return &health.Refusal{Err: err}
	}
	return err
}
