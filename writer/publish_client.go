package writer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"time"

	"rankcache/internal/kafka"
)

const flushTimeout = 5 * time.Second // how long queued updates may take when the writer stops

// batchSize is the setting of a batch's bytes, usualBatch librdkafka's default of it.
const (
	batchSize  = "batch.size"
	usualBatch = 1_000_000
)

const purgeTimeout = time.Second // how long librdkafka may take to report purged messages

// producer sends updates to Kafka and waits for their acknowledgement. It is safe for concurrent use.
type producer struct {
	topics  *topics
	metrics *metrics
	log     *slog.Logger

	mu      sync.Mutex // guards the next three; not held during requests to the broker
	conf    kafka.Settings
	batch   int          // of new clients
	current *kafkaClient // nil once closed
}

// kafkaClient is a handle of librdkafka, unusable once closed: closing waits for its users.
type kafkaClient struct {
	*kafka.Producer
	batch int            // bytes that a batch of several records may have
	users sync.WaitGroup // Add only with producer.mu held, while it is current
}

// errBatch is of a batch for which its topic has no room, though it may have for each of its records.
var errBatch = errors.New("smaller batches are made")

// newProducer returns a producer with a running client, which the caller closes.
func newProducer(given kafka.Settings, t *topics, m *metrics, log *slog.Logger) (*producer, error) {
	p := &producer{conf: maps.Clone(given), topics: t, metrics: m, log: log, batch: usualBatch}
	var err error
	if text, ok := given[batchSize]; ok {
		if p.batch, err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("kafka setting %s: %w", batchSize, err)
		}
	}
	p.current, err = p.open()
	return p, err
}

// open starts a client. It does not wait for the broker.
func (p *producer) open() (*kafkaClient, error) {
	client, err := kafka.NewProducer(kafka.LogTo(p.log), commonSettings, producerSettings, p.conf, kafka.Settings{batchSize: strconv.Itoa(p.batch)})
	if err != nil {
		return nil, err
	}
	return &kafkaClient{Producer: client, batch: p.batch}, nil
}

// use returns the current client. The caller calls users.Done when it no longer uses it.
func (p *producer) use() (*kafkaClient, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return nil, errClosed
	}
	p.current.users.Add(1)
	return p.current, nil
}

// setLogin has the client, and those that replace it, log in with a new user name and password.
func (p *producer) setLogin(username, password string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return nil
	}
	p.conf["sasl.username"], p.conf["sasl.password"] = username, password
	return p.current.SetSaslCredentials(username, password)
}

// close flushes queued messages, for a limited time, and closes the client.
func (p *producer) close() {
	p.mu.Lock()
	c := p.current
	p.current = nil
	p.mu.Unlock()
	if c != nil {
		c.end(flushTimeout)
	}
}

// end closes a former client once it has no users. What can't be sent in time is reported as failed.
func (c *kafkaClient) end(flush time.Duration) {
	c.users.Wait()
	if c.Flush(int(flush.Milliseconds())) > 0 {
		c.Drop()
		c.Flush(int(purgeTimeout.Milliseconds()))
	}
	c.Close()
}

// renew replaces a client after a fatal error, which librdkafka reports when it has lost track of what an idempotent
// producer has sent, and one that makes larger batches than a topic takes. Senders retry what was queued.
func (p *producer) renew(used *kafkaClient, failed error) error {
	fresh, err := p.replace(used, errors.Is(failed, errBatch))
	if fresh {
		used.end(0)
	}
	return err
}

func (p *producer) replace(used *kafkaClient, tooLarge bool) (replaced bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if used == nil || p.current != used || used.GetFatalError() == nil && (!tooLarge || used.batch == 1) {
		return false, nil // closed, replaced by another caller, or as good as a new one
	}
	if tooLarge {
		p.batch = max(used.batch/4, 1)
		p.log.Warn("a topic takes no batch as large as the writer makes them: it makes smaller ones until it is restarted; raise max.message.bytes of its topics to 1048588", "batch_bytes", p.batch)
	}
	next, err := p.open()
	if err != nil {
		return false, err
	}
	p.current = next
	return true, nil
}

// with calls do with the current client, which stays open meanwhile.
func (p *producer) with(do func(*kafkaClient) error) error {
	c, err := p.use()
	if err != nil {
		return err
	}
	defer c.users.Done()
	return do(c)
}

// makeCommandTopic creates the topic of commands if it is missing and configured.
func (p *producer) makeCommandTopic(ctx context.Context) error {
	return p.with(func(c *kafkaClient) error { return p.topics.ensureCommands(ctx, c.Admin) })
}

// commandLog returns how the topic of commands keeps them. One that is missing is made first if that is configured.
func (p *producer) commandLog(ctx context.Context) (found kafka.CommandLog, err error) {
	err = p.with(func(c *kafkaClient) (err error) {
		found, err = c.CommandLog(ctx, p.topics.names.Commands)
		if err != nil || !found.Missing || p.topics.conf.CommandPartitions == 0 {
			return err
		}
		if err = p.topics.ensureCommands(ctx, c.Admin); kafka.Refused(err) {
			return nil // it is missing, and stays so
		}
		return cmp.Or(err, errNotMadeYet)
	})
	return found, err
}

var errNotMadeYet = errors.New("the command topic is being made") // of a topic that a broker has been told to make

func (p *producer) commandTopicID(ctx context.Context) (id string, err error) {
	err = p.with(func(c *kafkaClient) (err error) {
		id, err = c.Admin.TopicID(ctx, p.topics.names.Commands)
		return err
	})
	return id, err
}

// makeTopics creates those of the boards' topics that are missing.
func (p *producer) makeTopics(ctx context.Context, names []string) error {
	return p.with(func(c *kafkaClient) error { return p.topics.ensure(ctx, c.Admin, names) })
}
