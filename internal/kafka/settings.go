package kafka

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// Settings are librdkafka's, by name. Of several that a client is given later ones win.
type Settings = map[string]string

// defaults are the first settings of every client.
var defaults = Settings{
	"log.connection.close":    "false", // brokers close idle connections all the time
	"enable.metrics.push":     "false",
	"socket.keepalive.enable": "true",
	// Else a request that waits for a broker which refuses connections has librdkafka try 18,000 a second, with two cores, for
	// as long as Kafka is away. The price is a connection to each broker.
	"enable.sparse.connections": "false",
}

// Member returns the settings of a consumer that shares a topic with the others of a group.
func Member(group string) Settings {
	return Settings{
		"group.id":                           group,
		"enable.auto.commit":                 "false", // what is done with a record is known to its reader
		"enable.auto.offset.store":           "false",
		"isolation.level":                    "read_committed",
		"partition.assignment.strategy":      "cooperative-sticky",
		"topic.metadata.refresh.interval.ms": "10000", // finds a topic that is made later
		"session.timeout.ms":                 "10000", // another member takes over this long after a crash
		"heartbeat.interval.ms":              "3000",
		"queued.max.messages.kbytes":         "16384", // memory outside of Go's heap
		"fetch.queue.backoff.ms":             "10",    // the default of 1 s limits the rate
	}
}

// Check refuses an operator's settings without brokers, or with one on which guarantees depend, as those owned.
func Check(given Settings, owned ...string) error {
	if given["bootstrap.servers"] == "" {
		return errors.New("kafka setting bootstrap.servers is missing: want host:port[,host:port]")
	}
	owned = append(owned, "group.id", "enable.auto.commit", "enable.auto.offset.store")
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(owned, key) || strings.HasPrefix(key, "go.") {
			return fmt.Errorf("kafka setting %s is set by rankcache: remove it", key)
		}
	}
	return nil
}

// config returns the configuration of a client. Errors come as events too, so that one without a log is silent.
func config(log Log, layers []Settings) *ck.ConfigMap {
	conf := ck.ConfigMap{}
	for _, layer := range append([]Settings{defaults}, layers...) {
		for key, value := range layer {
			conf[key] = value
		}
	}
	if conf["go.logs.channel.enable"] = log != nil; log == nil {
		conf["log_level"] = 0
	}
	return &conf
}
