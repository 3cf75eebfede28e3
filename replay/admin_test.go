package replay_test

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// deleteRecords cuts the beginning of the log of partition 0.
func (b *board) deleteRecords(before int64) {
	b.t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rt.Topic, rp.Offset, req.TimeoutMillis = b.topic(), before, 10_000
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(context.Background(), b.client)
	b.check(err)
	b.check(kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode))
}

// create makes the board's topic, if the broker has none of the name any more.
func (b *board) create() error {
	req := kmsg.NewPtrCreateTopicsRequest()
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = b.topic(), b.parts, 1
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(context.Background(), b.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].ErrorCode)
}

// widen gives the board's topic more partitions.
func (b *board) widen(partitions int32) {
	b.t.Helper()
	req := kmsg.NewPtrCreatePartitionsRequest()
	rt := kmsg.NewCreatePartitionsRequestTopic()
	rt.Topic, rt.Count, req.TimeoutMillis = b.topic(), partitions, 10_000
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(context.Background(), b.client)
	b.check(err)
	b.check(kerr.ErrorForCode(resp.Topics[0].ErrorCode))
	b.parts = partitions
}
