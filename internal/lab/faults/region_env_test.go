package faults

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// clientOf returns a client of a server until the end of the test.
func (r *regions) clientOf(server *servers.Redis) *redis.Client {
	c := server.Client()
	r.Cleanup(func() { c.Close() })
	return c
}

// seqs returns what a Redis has of each board.
func (r *regions) seqs(c *redis.Client) map[rankcache.BoardID]uint64 {
	r.Helper()
	seqs := map[rankcache.BoardID]uint64{}
	for _, b := range r.boards {
		seqs[b.ID] = r.seqIn(c, b.ID)
	}
	return seqs
}

func atLeast(want, have map[rankcache.BoardID]uint64) error {
	for id, seq := range want {
		if have[id] < seq {
			return fmt.Errorf("%s is at %d, want %d", id, have[id], seq)
		}
	}
	return nil
}

// repeat posts commands once more, which were acknowledged: what is there is answered as it was, what was lost is applied.
func (r *regions) repeat(updates []wire.Update) {
	r.Helper()
	client := newClient(1)
	defer client.CloseIdleConnections()
	for _, u := range updates {
		c := &command{Order: u.OrderID, Board: u.Board, Member: u.Member, Op: u.Op.String(), At: u.At}
		switch u.Op {
		case wire.OpIncr:
			c.Delta = &u.Delta
		case wire.OpSet:
			c.Score = &u.Score
		}
		r.writes.post(r.Context(), client, c)
	}
	r.Logf("%d orders were repeated", len(updates))
}

// topics returns those of a broker but Kafka's own.
func (r *regions) topics(broker string) (topics []string) {
	r.Helper()
	resp, err := kmsg.NewPtrMetadataRequest().RequestWith(r.Context(), testkit.KafkaClient(r, broker))
	r.must(err)
	for _, t := range resp.Topics {
		if !strings.HasPrefix(*t.Topic, "__") {
			topics = append(topics, *t.Topic)
		}
	}
	return topics
}

// deleteTopics deletes them, MirrorMaker's too.
func (r *regions) deleteTopics(broker string) {
	r.Helper()
	for _, topic := range r.topics(broker) {
		testkit.DeleteTopic(r, broker, topic)
	}
	r.eventually(func() error {
		if left := r.topics(broker); len(left) > 0 {
			return fmt.Errorf("%q are left", left)
		}
		return nil
	})
}

// waitMirrored waits until a broker has the last record of each topic of another one, to which nothing is written.
func (r *regions) waitMirrored(from, to string) {
	r.Helper()
	for _, topic := range r.topics(from) {
		if !strings.HasPrefix(topic, "update_") && topic != r.commands() {
			continue // MirrorMaker's own
		}
		want := r.last(from, topic)
		r.eventually(func() error {
			if got := r.last(to, topic); got != want {
				return fmt.Errorf("the mirror of %s is at %q, want %q", topic, got, want)
			}
			return nil
		})
	}
}

// last returns the last record of a topic of one partition.
func (r *regions) last(broker, topic string) string {
	r.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtEnd().Relative(-1)}}))
	r.must(err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	fetches := client.PollFetches(ctx)
	if records := fetches.Records(); len(records) > 0 {
		return string(records[len(records)-1].Value)
	}
	return fmt.Sprint("nothing: ", fetches.Err0())
}
