package writer

import (
	"context"
	"slices"

	"rankcache/internal/kafka"
	"rankcache/internal/tick"
	"rankcache/writer/internal/rewind"
)

// An offset means a record of one topic, and Kafka does not tell that a topic was made again. So offsets are committed
// with the topic's id, which is compared with the present one's when partitions are assigned, and once a second.

// watchTopic asks which topic has the name, until ctx ends.
func (c *consumer) watchTopic(ctx context.Context) {
	for range tick.Every(ctx, lookEvery) {
		if id, err := c.identify(ctx); err == nil && c.reads.Load() != nil && id != c.reading() {
			c.replaced.Store(true)
		}
	}
}

// lookAtTopic has all partitions read from where they are to be, if the topic seems to be another one.
func (c *consumer) lookAtTopic() {
	if !c.replaced.Swap(false) {
		return
	}
	if c.round.number > 0 {
		c.rewinds.tell(rewind.Cut{Round: c.round.number})
		return
	}
	for _, p := range c.mine() {
		c.given[p.Partition] = true
	}
}

// readsOf notes the topic of a round of the machine.
func (c *consumer) readsOf(topicID string) {
	if was := (kafka.Note{Topic: c.reading()}); !was.Of(topicID) {
		c.tellReplaced(numbers(c.mine()))
	}
	c.reads.Store(&topicID)
}

// goOn has the partitions that were given read from where they are to be, and reports success.
func (c *consumer) goOn() bool {
	if len(c.given) == 0 {
		return true
	}
	return c.goTo(slices.DeleteFunc(c.mine(), func(p kafka.TopicPartition) bool { return !c.given[p.Partition] }))
}

// goTo has partitions read on from where the group has come in the present topic, and reports success.
func (c *consumer) goTo(of []kafka.TopicPartition) bool {
	if len(of) == 0 {
		return true
	}
	id, err := c.identify(context.Background())
	committed, err := c.committed(of, err)
	var replaced []int32
	for p, at := range committed {
		if err != nil {
			break
		}
		var other bool
		if at.Offset, other = c.place(&at, id); other {
			replaced = append(replaced, p)
		}
		c.unnoted[p] = at.Offset >= 0 && kafka.NoteOf(at).Topic == "" || other
		err = c.seekTo(p, at.Offset)
	}
	if !c.sought(err) {
		return false
	}
	c.tellReplaced(replaced)
	clear(c.given)
	c.reads.Store(&id)
	return true
}

// place returns where a partition is read of which the group has an offset, and whether it was another topic's.
func (c *consumer) place(at *kafka.TopicPartition, id string) (offset kafka.Offset, other bool) {
	note, was := kafka.NoteOf(*at), kafka.Note{Topic: c.reading()}
	isCommitted, isNew := at.Offset >= 0, note.Topic != "" && note.Topic == id
	switch {
	case isCommitted && (isNew || note.Of(id) && was.Of(id)):
		return at.Offset, false
	case isCommitted:
		return kafka.OffsetBeginning, true
	}
	return kafka.OffsetBeginning, !was.Of(id)
}

// tellReplaced counts and logs that partitions are of another topic than what was read of them.
func (c *consumer) tellReplaced(partitions []int32) {
	if len(partitions) == 0 {
		return
	}
	c.rewinds.metrics.replaced.Add(float64(len(partitions)))
	c.log.Error("the command topic was deleted and made again: commands of the former one that were not read are lost, the new one is read from its beginning",
		"topic", c.topic, "partitions", partitions, "was", c.reading())
}
