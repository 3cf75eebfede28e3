package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"rankcache/internal/kafka"
)

const (
	maxMessage = "max.message.bytes"
	// usualBatch is how large a client makes batches unless it is told otherwise, and largestRecord how large a single
	// record may be.
	usualBatch    = 1_000_000
	largestRecord = 32 << 10
)

// batchOf returns how large the batches of a client with these settings are.
func batchOf(settings map[string]string) int64 {
	return min(number(settings["batch.size"], usualBatch), number(settings["message.max.bytes"], usualBatch))
}

// sizes compares the limits of topics and brokers with what writers send.
func (k *Kafka) sizes(ctx context.Context) Verdict {
	s, err := k.survey(ctx, k.boards())
	if err != nil {
		return k.unasked(err)
	}
	names := []string{k.names.Commands, k.names.Refused, k.names.Ledger}
	for _, t := range s.topics {
		names = append(names, t.name)
	}
	limits := make(map[string]int64)
	answer, err := k.client.Settings(ctx, names...)
	for _, a := range answer {
		switch a.Error.Code() {
		case kafka.ErrNoError:
			limits["topic "+a.Name] = number(a.Config[maxMessage].Value, usualBatch)
		case kafka.ErrUnknownTopicOrPart:
		default:
			err = cmp.Or(err, error(fmt.Errorf("settings of topic %s: %w", a.Name, a.Error)))
		}
	}
	if err == nil {
		err = k.brokerLimits(ctx, limits)
	}
	switch {
	case kafka.Refused(err):
		return warnf("whether topics take what writers send is unknown: check that %s is 1048588 of all: %s", maxMessage, k.explain(err))
	case err != nil:
		return k.unasked(err)
	}
	return judgeSizes(limits, k.batch)
}

// brokerLimits adds the limits of topics that are still to be made.
func (k *Kafka) brokerLimits(ctx context.Context, limits map[string]int64) error {
	brokers, err := k.client.BrokerSettings(ctx)
	for _, b := range brokers {
		limits["broker "+b.Name] = number(b.Config["message.max.bytes"].Value, usualBatch)
	}
	return err
}

// judgeSizes judges the limits of topics and brokers, by their names, for batches of a size.
func judgeSizes(limits map[string]int64, batch int64) Verdict {
	var small, smaller []string
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		limit := limits[name]
		if text := fmt.Sprintf("%s (%d)", name, limit); limit < largestRecord {
			small = append(small, text)
		} else if limit < batch {
			smaller = append(smaller, text)
		}
	}
	switch {
	case len(small) > 0:
		return failf("%d limits are below a single record of up to %d bytes: %s: posts would be refused, updates left out; set max.message.bytes (message.max.bytes of a broker) to 1048588", len(small), largestRecord, list(small))
	case len(smaller) > 0:
		return warnf("%d limits are below a batch of %d bytes: %s: writers make smaller batches for all topics; set max.message.bytes (message.max.bytes of a broker) to 1048588", len(smaller), batch, list(smaller))
	}
	return okf("%d topics and brokers take batches of %d bytes", len(limits), batch)
}
