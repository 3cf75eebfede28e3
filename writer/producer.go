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

	"golang.org/x/time/rate"

	"rankcache/internal/kafka"
)

const flushTimeout = 5 * time.Second // how long queued updates may take when the writer stops

// batchSize is the setting of a batch's bytes, usualBatch librdkafka's default of it.
const (
	batchSize  = "batch.size"
	usualBatch = 1_000_000
)

const purgeTimeout = time.Second // how long librdkafka may take to report purged messages

// message is one record to be produced: an update, a refused command, or a post's command.
type message struct {
	topic     string
	key       []byte // the member, or the board of a refused command
	partition *int32 // nil: that of the key
	value     []byte
	post      string                     // name of the post that it is of; "": none
	appended  func(kafka.TopicPartition) // called when Kafka has acknowledged it, unless it is nil
	tooLarge  func(error)                // called if its topic takes no record of its size, unless it is nil
	kept      bool                       // it must not be left out, though its topic takes no record of its size
}

func (m *message) size() int { return len(m.key) + len(m.value) }

func (m *message) headers() []kafka.Header {
	if m.post == "" {
		return nil
	}
	return []kafka.Header{{Key: postHeader, Value: []byte(m.post)}}
}

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

var errClosed = errors.New("the writer is stopping")

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

// makeCommandTopic creates the topic of commands if it is missing and configured.
func (p *producer) makeCommandTopic(ctx context.Context) error {
	c, err := p.use()
	if err != nil {
		return err
	}
	defer c.users.Done()
	return p.topics.ensureCommands(ctx, c.Admin)
}

// commandLog returns how the topic of commands keeps them. One that is missing is made first if that is configured.
func (p *producer) commandLog(ctx context.Context) (found kafka.CommandLog, err error) {
	c, err := p.use()
	if err != nil {
		return found, err
	}
	defer c.users.Done()
	found, err = c.CommandLog(ctx, p.topics.commands)
	if err != nil || !found.Missing || p.topics.conf.CommandPartitions == 0 {
		return found, err
	}
	if err = p.topics.ensureCommands(ctx, c.Admin); kafka.Refused(err) {
		return found, nil // it is missing, and stays so
	}
	return found, cmp.Or(err, errNotMadeYet)
}

func (p *producer) commandTopicID(ctx context.Context) (string, error) {
	c, err := p.use()
	if err != nil {
		return "", err
	}
	defer c.users.Done()
	return c.Admin.TopicID(ctx, p.topics.commands)
}

var errNotMadeYet = errors.New("the command topic is being made") // of a topic that a broker has been told to make

// makeTopics creates those of the boards' topics that are missing.
func (p *producer) makeTopics(ctx context.Context, names []string) error {
	c, err := p.use()
	if err != nil {
		return err
	}
	defer c.users.Done()
	return p.topics.ensure(ctx, c.Admin, names)
}

// send makes one attempt, or several with ever smaller batches, and returns once Kafka has acknowledged all messages.
// After an error, rest holds the messages whose acknowledgement is missing.
func (p *producer) send(ctx context.Context, messages []message) (rest []message, err error) {
	for rest, err = p.attempt(ctx, messages); errors.Is(err, errBatch) && ctx.Err() == nil; {
		rest, err = p.attempt(ctx, rest)
	}
	return rest, err
}

func (p *producer) attempt(ctx context.Context, messages []message) (rest []message, err error) {
	reports, client, queued, err := p.enqueue(ctx, messages)
	acked := make([]bool, len(messages))
	for range queued {
		select {
		case <-ctx.Done():
			return unacked(messages, acked), context.Cause(ctx)
		case ev := <-reports:
			if failed := p.report(ev, client, messages, acked); failed != nil && !errors.Is(err, errBatch) {
				err = failed
			}
		}
	}
	if err != nil {
		err = errors.Join(err, p.renew(client, err))
	}
	return unacked(messages, acked), err
}

// enqueue passes messages to librdkafka until it rejects one. queued of them will be reported on the channel, whose
// capacity is for all, so that librdkafka never blocks if send stops reading.
func (p *producer) enqueue(ctx context.Context, messages []message) (reports chan kafka.Event, client *kafkaClient, queued int, err error) {
	if client, err = p.use(); err != nil {
		return nil, nil, 0, err
	}
	defer client.users.Done()
	names := make([]string, len(messages))
	for i := range messages {
		names[i] = messages[i].topic
	}
	if err = p.topics.ensure(ctx, client.Admin, names); err != nil {
		return nil, client, 0, err
	}
	reports = make(chan kafka.Event, len(messages))
	for i := range messages {
		m := &messages[i]
		to := kafka.On(m.topic, kafka.PartitionAny)
		if m.partition != nil {
			to.Partition = *m.partition
		}
		err = client.Produce(&kafka.Message{TopicPartition: to,
			Key: m.key, Value: m.value, Headers: m.headers(), Opaque: i}, reports)
		if kafka.Code(err) == kafka.ErrTooLarge { // for this client
			reports <- &kafka.Message{TopicPartition: kafka.TopicPartition{Error: err}, Opaque: i}
		} else if err != nil {
			p.forgetIfGone(m.topic, err)
			return reports, client, i, fmt.Errorf("producing to %s: %w", m.topic, err)
		}
	}
	return reports, client, len(messages), nil
}

// report records the delivery of one message and returns its error.
func (p *producer) report(ev kafka.Event, by *kafkaClient, messages []message, acked []bool) error {
	m, ok := ev.(*kafka.Message)
	if !ok {
		return nil
	}
	i, _ := m.Opaque.(int)
	err := m.TopicPartition.Error
	if err == nil {
		acked[i] = true
		p.metrics.published.Inc()
		if told := messages[i].appended; told != nil {
			told(m.TopicPartition)
		}
		return nil
	}
	p.forgetIfGone(messages[i].topic, err)
	err = fmt.Errorf("producing to %s: %w", messages[i].topic, err)
	if kafka.Code(err) != kafka.ErrTooLarge {
		return err
	}
	if messages[i].size() < by.batch {
		return fmt.Errorf("%w: %w", errBatch, err)
	}
	acked[i], err = p.refuse(&messages[i], err)
	return err
}

// errBatch is of a batch for which its topic has no room, though it may have for each of its records.
var errBatch = errors.New("smaller batches are made")

// refuse is called of a record for which its topic has no room, though it was a batch of its own. It returns nil if the
// record is left out, as no retry helps; one that must not be is tried until there is room.
func (p *producer) refuse(m *message, why error) (out bool, err error) {
	why = fmt.Errorf("%w: a record of %d bytes: raise max.message.bytes of the topic, and message.max.bytes of --kafka-setting", why, m.size())
	p.metrics.tooLarge.WithLabelValues(m.topic).Inc()
	switch {
	case m.kept:
		return false, why
	case m.tooLarge != nil:
		m.tooLarge(why)
	default:
		p.log.Error("a record is left out", "key", string(m.key), "err", why)
	}
	return true, nil
}

// forgetIfGone makes the next attempt check for the topic and create it again.
func (p *producer) forgetIfGone(topic string, err error) {
	switch kafka.Code(err) {
	case kafka.ErrUnknownTopicOrPart, kafka.ErrUnknownTopic, kafka.ErrUnknownPartition:
		p.topics.forget(topic)
	}
}

func unacked(messages []message, acked []bool) (rest []message) {
	for i, ok := range acked {
		if !ok {
			rest = append(rest, messages[i])
		}
	}
	return rest
}

// logLimit allows one log line a second of one kind; metrics count every event.
func logLimit() rate.Sometimes { return rate.Sometimes{Interval: time.Second} }
