package writer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankcache/internal/kafka"
	"rankcache/writer/internal/rewind"
)

// follow goes to where the present round begins, once that is known. Until then nothing is fetched.
func (c *consumer) follow() {
	if c.rebalanced {
		c.rebalanced = false
		c.rewinds.assign(numbers(c.mine()))
	}
	now := c.rewinds.round.Load()
	switch {
	case now == c.round || now.number == c.paused && !now.reading:
		return
	case now.reading && c.seek(now):
		c.round = now
	case !now.reading && c.client.Pause(c.mine()) == nil:
		c.paused = now.number
	}
}

// seek has the partitions read from where a round begins, and reports success: one that was just assigned
// is not fetched yet.
func (c *consumer) seek(to *round) bool {
	c.at = make(map[int32]int64, len(to.seeks))
	err := c.client.Resume(c.mine())
	seeks := to.seeks
	if to.number == 0 && err == nil {
		seeks, err = c.fromCommitted()
	}
	for p, s := range seeks {
		if err != nil {
			break
		}
		at := kafka.On(c.topic, p)
		at.Offset = kafka.Offset(s.Offset)
		c.at[p], err = s.Offset, c.client.Seek(at, 0)
	}
	if err != nil && kafka.Code(err) != kafka.ErrState {
		c.logError(err)
	}
	return err == nil
}

// fromCommitted returns where the group has come.
func (c *consumer) fromCommitted() (map[int32]rewind.Seek, error) {
	committed, err := c.committed(c.mine(), nil)
	seeks := make(map[int32]rewind.Seek, len(committed))
	for p, at := range committed {
		if at.Offset < 0 {
			at.Offset = kafka.OffsetBeginning
		}
		seeks[p] = rewind.Seek{Offset: int64(at.Offset)}
	}
	return seeks, err
}

// mine returns the partitions that this writer has.
func (c *consumer) mine() []kafka.TopicPartition {
	mine, err := c.client.Assignment()
	if err != nil {
		c.logError(err)
	}
	return mine
}

func numbers(of []kafka.TopicPartition) []int32 {
	all := make([]int32, len(of))
	for i := range of {
		all[i] = of[i].Partition
	}
	return all
}

// take adds a record, or the end of a partition, to a batch, and reports whether more may follow. In a
// round of the machine nothing is taken that is not of it.
func (c *consumer) take(b *batch, m *kafka.Message) bool {
	p, next, isEnd := m.TopicPartition.Partition, m.TopicPartition.Offset, m.TopicPartition.Error != nil
	switch {
	case isEnd && (c.round.number == 0 || int64(next) <= c.at[p]):
		return true // the last record tells as much
	case c.round.number != 0 && !c.expects(p, int64(next)):
		return false
	}
	if !isEnd {
		if b.records == nil {
			b.polled = time.Now()
		}
		b.records = append(b.records, m)
		next++
	}
	if b.ends[p] = next; c.round.number != 0 {
		c.at[p] = int64(next)
	}
	return true
}

// expects reports whether an offset is of the round and the log is without a gap before.
func (c *consumer) expects(partition int32, offset int64) bool {
	at, mine := c.at[partition]
	if c.rebalanced || !mine || c.rewinds.stale(c.round) {
		return false
	}
	cut := offset < at || offset > at && c.isCut(partition, at)
	if cut {
		c.rewinds.tell(rewind.Cut{Round: c.round.number})
	}
	return !cut
}

// isCut reports whether the log begins behind an offset that was to be read. Transactions leave gaps,
// too, so it is asked once a second.
func (c *consumer) isCut(partition int32, offset int64) (cut bool) {
	c.cutLog.Do(func() {
		start, _, err := c.client.QueryWatermarkOffsets(c.topic, partition, int(cutTimeout.Milliseconds()))
		cut = err == nil && start > offset
	})
	return cut
}

// logs tells what a rewind needs to know of all partitions. life is how far back order ids are known, half
// that of the class that forgets first.
func (c *consumer) logs(ctx context.Context, life, half time.Duration) (map[int32]rewind.Log, error) {
	n, err := c.client.Partitions(ctx, c.topic)
	if err != nil || n == 0 {
		return nil, errors.Join(err, errNoTopic)
	}
	all, now, of := make([]kafka.TopicPartition, n), time.Now(), make(map[int32]rewind.Log, n)
	for i := range all {
		all[i] = kafka.On(c.topic, int32(i)) // #nosec G115 -- a partition
	}
	topic, err := c.client.TopicID(ctx, c.topic)
	var at [4]map[int32]int64
	for i, spec := range []kafka.OffsetSpec{kafka.First, kafka.End, kafka.Since(now.Add(-life)), kafka.Since(now.Add(-half))} {
		if err == nil {
			at[i], err = c.client.OffsetsOf(ctx, all, spec, kafka.ReadCommitted)
		}
	}
	committed, err := c.committed(all, err)
	for _, one := range all {
		p := one.Partition
		l := rewind.Log{Topic: topic, Start: at[0][p], End: at[1][p], LifeBack: at[2][p], HalfLifeBack: at[3][p],
			Committed: int64(committed[p].Offset), Noted: isNoted(committed[p])}
		if l.LifeBack < 0 { // no record is so late
			l.LifeBack = l.End
		}
		if l.HalfLifeBack < 0 {
			l.HalfLifeBack = l.End
		}
		of[p] = l
	}
	return of, err
}

// errNoTopic tells that the command topic is not there (yet).
var errNoTopic = errors.New("the command topic has no partition")

// noted is what the group commits beside offsets while positions are kept. Without it a master that has no
// position of a partition is not damaged: it never had one.
var noted = "rankcache positions"

// keepsPositions reports whether masters have them.
func (c *consumer) keepsPositions() bool { return c.rewinds.round.Load().number > 0 }

func isNoted(at kafka.TopicPartition) bool { return at.Metadata != nil && *at.Metadata == noted }

// committed returns what the group has committed, unless there was an error before.
func (c *consumer) committed(of []kafka.TopicPartition, err error) (offsets map[int32]kafka.TopicPartition, _ error) {
	if err != nil {
		return nil, err
	}
	found, err := c.client.Committed(of, int(askTimeout.Milliseconds()))
	offsets = make(map[int32]kafka.TopicPartition, len(of))
	for i := 0; err == nil && i < len(found); i++ {
		offsets[found[i].Partition], err = found[i], found[i].Error
	}
	if err != nil {
		return nil, fmt.Errorf("committed offsets of %s: %w", c.topic, err)
	}
	return offsets, nil
}
