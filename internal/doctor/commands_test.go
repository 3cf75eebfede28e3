package doctor

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache/internal/kafka"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

func TestCommandTimes(t *testing.T) {
	broker := testkit.Kfake(t).Addr()
	testkit.CreateTopic(t, broker, "senders", 1, nil)
	testkit.CreateTopic(t, broker, "brokers", 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
	for topic, want := range map[string]string{"senders": "warn: message.timestamp.type=CreateTime", "brokers": "ok", "missing": "warn: --command-partitions", "none": "ok: no class has periods"} {
		names := wire.DefaultNames()
		names.Commands = topic
		k, err := OpenKafka(broker, nil, names, "seq", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		check(t, topic, k.CommandTimes(func() bool { return topic != "none" }).Look(t.Context()), want)
		k.Close()
	}
}

// Durable classes need a topic that keeps their commands; whoever may not read its settings is told the right.
func TestDurable(t *testing.T) {
	may := func(op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "*", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
	}
	broker := testkit.Kfake(t, kfake.NumBrokers(2), kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "secret"),
		kfake.User("PLAIN", "app", "secret", may(kmsg.ACLOperationDescribe))).Addr()
	open := func(user, topic string) *Kafka {
		names := wire.DefaultNames()
		names.Commands = topic
		k, err := OpenKafka(broker, map[string]string{"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": "secret"}, names, "seq", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(k.Close)
		return k
	}
	for topic, settings := range map[string]map[string]string{"good": {"min.insync.replicas": "2"}, "thin": {"min.insync.replicas": "1"}, "cut": {"retention.bytes": "1000"}, "senders": {"message.timestamp.type": "CreateTime"}} {
		config := map[string]string{"message.timestamp.type": "LogAppendTime", "retention.ms": "7200000"}
		maps.Copy(config, settings)
		if _, err := open("admin", topic).client.Make(t.Context(), []kafka.TopicSpec{{Topic: topic, NumPartitions: 1, ReplicationFactor: 2, Config: config}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		user, topic string
		orders      time.Duration
		want        string
	}{
		{"admin", "senders", 0, "ok: no class is durable"},
		{"admin", "good", time.Hour, "ok: topic good keeps what durable classes need"},
		{"admin", "thin", time.Hour, "ok: with min.insync.replicas=1 of 2 a command can be lost with one broker: better 2"},
		{"admin", "cut", time.Hour, "warn: topic cut is cut at 1000 bytes a partition"},
		{"admin", "good", 61 * time.Minute, "fail: writers refuse posts of durable classes: set on topic good: retention.ms=7320000"},
		{"admin", "senders", time.Hour, "fail: message.timestamp.type=LogAppendTime (it is CreateTime)"},
		{"admin", "missing", time.Hour, "fail: there is no topic missing: have the writer make it by --command-partitions"},
		{"app", "good", time.Hour, "warn: whether topic good is fit for durable classes is unknown: grant DescribeConfigs on it"},
	} {
		v := open(c.user, c.topic).Durable(func() time.Duration { return c.orders }).Look(t.Context())
		check(t, c.user+" "+c.topic, v, c.want)
		if c.topic == "good" && c.orders == time.Hour && strings.Contains(v.Advice, "better") {
			t.Errorf("good: %s", v.Advice)
		}
	}
}
