package writer

import (
	"context"
	"errors"
	"fmt"

	"rankcache/internal/kafka"
	"rankcache/wire"
)

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

// nameMasters appends the eras of the masters to each partition of the ledger's topic.
func (p *producer) nameMasters(ctx context.Context, topic string, eras []string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := p.makeTopics(ctx, []string{topic}); err != nil {
		return err
	}
	var n int
	err := p.with(func(c *kafkaClient) (err error) { n, err = c.Admin.Partitions(ctx, topic); return err })
	messages := make([]message, n)
	for i := range messages {
		messages[i] = message{topic: topic, partition: new(int32(i)), value: wire.AppendEras(nil, eras)} // #nosec G115 -- a partition
	}
	if err == nil {
		_, err = p.send(ctx, messages)
	}
	return err
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
