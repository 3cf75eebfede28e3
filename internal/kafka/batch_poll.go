//go:build kafkapoll

package kafka

import ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

type queue struct{}

func newQueue(*ck.Consumer) *queue { return nil }

// Records is that of batch_queue.go by the wrapper's public interface alone: to compare with, and for later wrappers.
func (c *Consumer) Records(into []Record) (n int, other Event) {
	for bytes := 0; n < len(into) && bytes < maxBatchBytes; n++ {
		switch ev := c.Poll(0).(type) {
		case *Message:
			at := &ev.TopicPartition
			if at.Error != nil {
				return n, at.Error.(Error)
			}
			into[n] = Record{Topic: *at.Topic, Partition: at.Partition, Offset: int64(at.Offset), Value: ev.Value}
			bytes += len(ev.Value)
		case Error, PartitionEOF:
			return n, ev
		default:
			return n, nil
		}
	}
	return n, nil
}
