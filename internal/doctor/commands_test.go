package doctor

import (
	"testing"

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
