package writer

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"sync"

	"rankcache/internal/kafka"
	"rankcache/wire"
)

// ledgerRetention is longer than a database should be away, in milliseconds.
const ledgerRetention = "2592000000" // 30 days

const maxKnownTopics = 100_000 // limits the cache of existing topics; it is cleared beyond that

// topics creates missing topics. It is safe for concurrent use.
type topics struct {
	conf    Topics
	tiers   Tiers
	names   wire.Names
	metrics *metrics

	mu    sync.Mutex      // not held during requests to the broker
	known map[string]bool // topics found or created by this process
}

func newTopics(conf Topics, names wire.Names, tiers Tiers, m *metrics) *topics {
	return &topics{conf: conf, tiers: tiers, names: names, metrics: m, known: make(map[string]bool)}
}

// ensure creates the missing ones of the boards' topics, and of the topics of refused commands and of the ledger.
func (t *topics) ensure(ctx context.Context, admin kafka.Admin, names []string) error {
	config := DefaultTopicSettings()
	maps.Copy(config, t.conf.Settings)
	var specs []kafka.TopicSpec
	for _, name := range t.unknown(names) {
		switch name {
		case t.names.Refused: // made like the command topic
			specs = append(specs, t.commandSpec(name))
			continue
		case t.names.Ledger:
			specs = append(specs, kafka.TopicSpec{Topic: name, NumPartitions: cmp.Or(t.conf.LedgerPartitions, DefaultLedgerPartitions),
				ReplicationFactor: t.conf.Replication, Config: map[string]string{"retention.ms": ledgerRetention}})
			continue
		case t.names.Commands: // made at the start
			continue
		}
		spec := kafka.TopicSpec{Topic: name, NumPartitions: 1, ReplicationFactor: t.conf.Replication, Config: config}
		if strings.HasPrefix(name, t.names.ClassPrefix) {
			spec.NumPartitions = max(t.conf.Partitions, 1)
		}
		specs = append(specs, spec)
	}
	return t.create(ctx, admin, specs)
}

// ensureCommands creates the command topic if it is missing and configured, fit for the durable classes in force.
func (t *topics) ensureCommands(ctx context.Context, admin kafka.Admin) error {
	if t.conf.CommandPartitions == 0 {
		return nil
	}
	spec := t.commandSpec(t.names.Commands)
	spec.Config = kafka.CommandLogSettings(t.tiers.File().DurableOrders())
	return t.create(ctx, admin, []kafka.TopicSpec{spec})
}

// commandSpec is of a topic with the broker's own retention.
func (t *topics) commandSpec(name string) kafka.TopicSpec {
	return kafka.TopicSpec{Topic: name, NumPartitions: max(t.conf.CommandPartitions, 1), ReplicationFactor: t.conf.Replication}
}

func (t *topics) create(ctx context.Context, admin kafka.Admin, specs []kafka.TopicSpec) error {
	made, err := admin.Make(ctx, specs)
	t.metrics.topics.Add(float64(made))
	for i := 0; err == nil && i < len(specs); i++ {
		t.note(specs[i].Topic)
	}
	return err
}

func (t *topics) unknown(names []string) (missing []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := make(map[string]bool)
	for _, name := range names {
		if !t.known[name] && !seen[name] {
			seen[name] = true
			missing = append(missing, name)
		}
	}
	return missing
}

func (t *topics) note(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxKnownTopics {
		clear(t.known)
	}
	t.known[name] = true
}

// forget makes the next ensure check a topic that was deleted.
func (t *topics) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, name)
}
