package writer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// settings are librdkafka's, by their own names.
type settings map[string]string

// commonSettings are those of every client.
var commonSettings = settings{
	"client.id":                          "rankcache-writer",
	"log.connection.close":               "false", // brokers close idle connections all the time
	"enable.metrics.push":                "false",
	"socket.keepalive.enable":            "true",
	"topic.metadata.refresh.interval.ms": "10000", // a topic that is made later is noticed
}

// consumerSettings are those of the command consumer.
var consumerSettings = settings{
	"auto.offset.reset":             "earliest", // a command is never skipped
	"partition.assignment.strategy": "cooperative-sticky",
	"isolation.level":               "read_committed",
	"session.timeout.ms":            "10000", // another writer takes over this long after a crash
	"heartbeat.interval.ms":         "3000",
	"queued.max.messages.kbytes":    "16384", // memory outside of Go's heap
	"fetch.queue.backoff.ms":        "10",    // the default of 1 s limits the rate
}

// producerSettings are those of the update producer. It tries for
// message.timeout.ms, so that a broker may restart without our notice.
var producerSettings = settings{
	"acks":               "all",
	"linger.ms":          "2", // a batch of commands is handed over in less
	"compression.type":   "lz4",
	"message.timeout.ms": "300000",
	"partitioner":        "murmur2_random", // as the Java client places keys
	// A topic is there before its first update. One that can't be found was
	// deleted: we want to hear of it soon and make it again.
	"topic.metadata.propagation.max.ms": "2000",
}

// owned are the settings that the promise of this package rests on.
var owned = settings{
	"group.id":                 "",      // has an option of its own
	"enable.auto.commit":       "false", // committed when the updates are acknowledged
	"enable.auto.offset.store": "false",
	"enable.idempotence":       "true",
}

// check refuses settings that are not the operator's to choose.
func (s settings) check() error {
	if s["bootstrap.servers"] == "" {
		return errors.New("kafka setting bootstrap.servers is missing: want host:port[,host:port]")
	}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if _, ours := owned[key]; ours || strings.HasPrefix(key, "go.") {
			return fmt.Errorf("kafka setting %s is rankcache's own: remove it", key)
		}
	}
	return nil
}

// merge returns a client's configuration: later settings win.
func merge(layers ...settings) *kafka.ConfigMap {
	conf := kafka.ConfigMap{"go.logs.channel.enable": true}
	for _, layer := range layers {
		for key, value := range layer {
			conf[key] = value
		}
	}
	return &conf
}

func (s settings) consumer(group string) *kafka.ConfigMap {
	return merge(commonSettings, consumerSettings, s, settings{"group.id": group,
		"enable.auto.commit": "false", "enable.auto.offset.store": "false"})
}

func (s settings) producer() *kafka.ConfigMap {
	conf := merge(commonSettings, producerSettings, s, settings{"enable.idempotence": "true"})
	(*conf)["go.delivery.report.fields"] = "none" // the opaque value says which it was
	return conf
}
