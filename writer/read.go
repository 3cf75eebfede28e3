package writer

import (
	"context"
	"time"

	"rankcache/internal/kafka"
	"rankcache/writer/internal/rewind"
)

// next waits for a record and returns it with those fetched: few at low load, many if batches take long. Kept records
// of last come first if their round is not over. Nil: ctx has ended; an error: the client failed.
func (c *consumer) next(ctx context.Context, last *batch) (*batch, error) {
	for ctx.Err() == nil {
		if !c.follow() {
			if _, err := c.poll(pollEvery); err != nil { // it is read again
				return nil, err
			}
			continue
		}
		b := &batch{round: c.round, topic: c.reading(), ends: make(offsets), left: make(offsets), sent: make(map[sentUpdate]bool)}
		if last != nil && last.round == c.round && len(last.kept) > 0 {
			b.records, b.polled, b.sent = last.kept, last.polled, last.sent
			for _, m := range last.kept {
				p := m.TopicPartition.Partition
				b.ends[p] = kafka.Offset(c.at[p])
			}
		}
		kept := len(b.records)
		c.pauseAt(kept)
		for wait := pollEvery; len(b.records) < kept+maxBatch; wait = 0 {
			m, err := c.poll(wait)
			if err != nil {
				return nil, err
			}
			if m == nil || !c.take(b, m) {
				break
			}
		}
		if len(b.ends) > 0 || kept > 0 {
			return b, nil
		}
	}
	return nil, nil
}

// pauseAt has nothing fetched while enough records are kept. Polling goes on, so that the group keeps the writer.
func (c *consumer) pauseAt(kept int) {
	if full := kept >= maxKept; full != c.full {
		var err error
		if c.full = full; full {
			err = c.client.Pause(c.mine())
		} else {
			err = c.client.Resume(c.mine())
		}
		if err != nil {
			c.logError(err)
		}
	}
}

// follow goes to the round's beginning once known, and reports whether records may be taken; else none are.
func (c *consumer) follow() bool {
	if c.rebalanced {
		c.rebalanced = false
		c.rewinds.assign(numbers(c.mine()))
	}
	c.lookAtTopic()
	now := c.rewinds.round.Load()
	switch {
	case now == c.round:
		return now.number > 0 || c.goOn()
	case now.number == c.paused && !now.reading:
	case now.reading && c.seek(now):
		c.round = now
		return true
	case !now.reading && c.client.Pause(c.mine()) == nil:
		c.paused = now.number
	}
	return c.round.number > 0
}

// seek has partitions read from a round's beginning, and reports success: new ones are not fetched yet.
func (c *consumer) seek(to *round) bool {
	c.at, c.behind = make(map[int32]int64, len(to.seeks)), make(map[int32]bool)
	err := c.client.Resume(c.mine())
	if to.number == 0 && err == nil {
		return c.goTo(c.mine())
	}
	for p, s := range to.seeks {
		if err == nil {
			c.behind[p] = s.Offset > s.Published
			c.at[p], err = s.Offset, c.seekTo(p, kafka.Offset(s.Offset))
		}
	}
	if err == nil {
		c.readsOf(to.topicID)
		clear(c.given)
	}
	return c.sought(err)
}

// take adds a record, or the end of a partition, to a batch, and reports whether more may follow. What is
// not read from where it is to be is not taken, and in a round of the machine nothing that is not of it.
func (c *consumer) take(b *batch, m *kafka.Message) bool {
	p, next, isEnd := m.TopicPartition.Partition, m.TopicPartition.Offset, m.TopicPartition.Error != nil
	switch {
	case c.round.number == 0 && c.given[p]:
		return false
	case isEnd && c.round.number == 0 && c.unnoted[p]: // its offset is committed with the topic
		delete(c.unnoted, p)
	case isEnd && c.behind[p] && int64(next) == c.at[p]: // it is committed, else there was a lag for ever
		delete(c.behind, p)
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

// isCut reports whether the log begins behind an offset to read. Transactions leave gaps: it is asked once a second.
func (c *consumer) isCut(partition int32, offset int64) (cut bool) {
	c.cutLog.Do(func() {
		start, _, err := c.client.QueryWatermarkOffsets(c.topic, partition, int(cutTimeout.Milliseconds()))
		cut = err == nil && start > offset
	})
	return cut
}
