package testkit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache/internal/lab/servers"
)

var sharedKafka = sharedServer{env: EnvKafka, start: startShared}

// startShared starts a broker, or kfake where Kafka is not installed.
func startShared() (handle, error) {
	k, err := servers.StartKafka(context.Background(), servers.KafkaOptions{})
	if err == nil {
		return handle{addr: k.Addr(), output: k.Output, close: k.Close}, nil
	}
	if !errors.Is(err, servers.ErrNotInstalled) || RequireReal() {
		return handle{}, err
	}
	fake, startErr := servers.StartKfake()
	if startErr != nil {
		return handle{}, startErr
	}
	return handle{addr: fake.Addr(), fake: true, why: err, close: func() error { fake.Close(); return nil }}, nil
}

// Kafka returns the host:port of the broker that all tests share: a real one, or kfake where Kafka is not installed,
// and prints that. The broker makes no topic by itself; use names made with Name.
func Kafka(t testing.TB) string {
	t.Helper()
	return kafka(t, &sharedKafka)
}

func kafka(t testing.TB, s *sharedServer) string {
	t.Helper()
	h, err := s.get(t)
	if err != nil {
		t.Fatal(err)
	}
	if h.fake {
		announce("KAFKA TESTS RUN ON KFAKE, NOT ON KAFKA: " + h.why.Error())
		t.Log("this test runs on kfake, not on Kafka:", h.why)
	}
	return h.addr
}

// RealKafka is Kafka for tests of what kfake does not do, such as compaction. It skips where Kafka is not installed,
// and prints that.
func RealKafka(t testing.TB) string {
	t.Helper()
	return realKafka(t, &sharedKafka)
}

func realKafka(t testing.TB, s *sharedServer) string {
	t.Helper()
	h, err := s.get(t)
	if h.fake {
		err = h.why
	}
	orSkip(t, err)
	return h.addr
}

// StartKafka starts a broker for this test alone, three to six seconds and 400 MB, and ends it with the test.
func StartKafka(t testing.TB, o servers.KafkaOptions) *servers.Kafka {
	t.Helper()
	k, err := servers.StartKafka(t.Context(), o)
	orSkip(t, err)
	endWith(t, "kafka", k)
	return k
}

// StartMirror starts Kafka's mirror from one broker to another for this test alone, some ten seconds and 300 MB, and
// ends it with the test.
func StartMirror(t testing.TB, o servers.MirrorOptions) *servers.Mirror {
	t.Helper()
	m, err := servers.StartMirror(t.Context(), o)
	orSkip(t, err)
	endWith(t, "mirror", m)
	return m
}

// Kfake starts a fake cluster of one broker for this test alone, in no time, and ends it with the test. Its embedded
// Cluster makes faults.
func Kfake(t testing.TB, opts ...kfake.Opt) *servers.Kfake {
	t.Helper()
	k, err := servers.StartKfake(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// clientTimeout bounds every call of the helpers below.
const clientTimeout = 30 * time.Second

// KafkaClient returns a pure-Go client of the brokers at "addr" or "addr,addr", closed at the end of the test. Tests
// fill and read topics with it, so that rankcache's own client does not check itself.
func KafkaClient(t testing.TB, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(strings.Split(addr, ",")...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// CreateTopic makes a topic and returns once it can be written to. Configs are its settings, such as "cleanup.policy":
// "compact".
func CreateTopic(t testing.TB, addr, topic string, partitions int32, configs map[string]string) {
	t.Helper()
	CreateReplicated(t, addr, topic, partitions, 1, configs)
}

// CreateReplicated is CreateTopic with so many copies of each partition.
func CreateReplicated(t testing.TB, addr, topic string, partitions int32, copies int16, configs map[string]string) {
	t.Helper()
	cl := KafkaClient(t, addr)
	resp, err := createRequest(topic, partitions, copies, configs).RequestWith(callCtx(t), cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatalf("create topic %s on %s: %v", topic, addr, err)
	}
	Eventually(t, clientTimeout, func() error { return hasLeaders(callCtx(t), cl, topic, int(partitions)) })
}

func createRequest(topic string, partitions int32, copies int16, configs map[string]string) *kmsg.CreateTopicsRequest {
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, partitions, copies
	for name, value := range configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = name, &value
		rt.Configs = append(rt.Configs, c)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, rt)
	return req
}

// hasLeaders returns nil once all partitions of a topic can be written to. A broker answers CreateTopics before it
// leads them.
func hasLeaders(ctx context.Context, cl *kgo.Client, topic string, partitions int) error {
	req := kmsg.NewPtrMetadataRequest()
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &topic
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	led := 0
	for _, p := range resp.Topics[0].Partitions {
		if p.ErrorCode == 0 && p.Leader >= 0 {
			led++
		}
	}
	if led < partitions {
		return fmt.Errorf("topic %s: %d of %d partitions have a leader", topic, led, partitions)
	}
	return nil
}

// DeleteTopic deletes a topic. The broker may go on answering for it for a moment.
func DeleteTopic(t testing.TB, addr, topic string) {
	t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	rt := kmsg.NewDeleteTopicsRequestTopic()
	rt.Topic = &topic
	req.Topics, req.TopicNames = append(req.Topics, rt), append(req.TopicNames, topic)
	resp, err := req.RequestWith(callCtx(t), KafkaClient(t, addr))
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatalf("delete topic %s on %s: %v", topic, addr, err)
	}
}

// Produce writes records and returns once the broker has acknowledged all of them. Without a partition of their own
// they go where their key belongs, to the same partition that librdkafka and the Java client would choose with murmur2.
func Produce(t testing.TB, addr string, records ...*kgo.Record) {
	t.Helper()
	if err := KafkaClient(t, addr).ProduceSync(callCtx(t), records...).FirstErr(); err != nil {
		t.Fatalf("produce %d records to %s: %v", len(records), addr, err)
	}
}

// Records reads a topic from its beginning and returns its first n records, in the order of each partition. It fails
// the test when there are fewer within half a minute.
func Records(t testing.TB, addr, topic string, n int) []*kgo.Record {
	t.Helper()
	cl, ctx := KafkaClient(t, addr, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), callCtx(t)
	var got []*kgo.Record
	for len(got) < n {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("read topic %s on %s: %d of %d records, then %v", topic, addr, len(got), n, err)
		}
		got = append(got, fetches.Records()...)
	}
	return got[:n]
}

func callCtx(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	t.Cleanup(cancel)
	return ctx
}

// Lag returns how many records of a topic with one partition a group has not committed.
func Lag(ctx context.Context, cl *kgo.Client, group, topic string) (int64, error) {
	committed, err := Committed(ctx, cl, group, topic, 1)
	if err != nil {
		return 0, err
	}
	req := kmsg.NewPtrListOffsetsRequest()
	rt, rp := kmsg.NewListOffsetsRequestTopic(), kmsg.NewListOffsetsRequestTopicPartition()
	rp.Timestamp = -1 // the end
	rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return 0, err
	}
	end := resp.Topics[0].Partitions[0]
	return end.Offset - committed, kerr.ErrorForCode(end.ErrorCode)
}

// Committed returns how many records of a topic's first partitions a group has committed.
func Committed(ctx context.Context, cl *kgo.Client, group, topic string, partitions int32) (n int64, err error) {
	req, rg, rt := kmsg.NewPtrOffsetFetchRequest(), kmsg.NewOffsetFetchRequestGroup(), kmsg.NewOffsetFetchRequestGroupTopic()
	rt.Topic = topic
	for p := range partitions {
		rt.Partitions = append(rt.Partitions, p)
	}
	rg.Group, rg.Topics = group, append(rg.Topics, rt)
	req.Groups = append(req.Groups, rg)
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return 0, err
	}
	for _, g := range resp.Groups {
		for _, of := range g.Topics {
			for _, p := range of.Partitions {
				n += max(p.Offset, 0)
			}
		}
	}
	return n, nil
}

// LoseGroups has a broker answer questions for the offsets of groups as one that does not coordinate them any more, for
// so many times.
func LoseGroups(broker *servers.Kfake, times int64) {
	const notCoordinator = 16
	var asked atomic.Int64
	broker.ControlKey(int16(kmsg.OffsetFetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		if asked.Add(1) > times {
			return nil, nil, false
		}
		req := r.(*kmsg.OffsetFetchRequest)
		res := req.ResponseKind().(*kmsg.OffsetFetchResponse)
		res.ErrorCode = notCoordinator
		for _, of := range req.Groups {
			group := kmsg.NewOffsetFetchResponseGroup()
			group.Group, group.ErrorCode = of.Group, notCoordinator
			res.Groups = append(res.Groups, group)
		}
		return res, nil, true
	})
}
