package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"rankcache/internal/kafka"
)

const (
	checkLedgerTopic = "ledger-topic"
	// shortLedger is the retention below which a database that is away for a few days costs records.
	shortLedger = 7 * 24 * time.Hour
	// farBehind is more records than a ledger that runs has not written yet: half a second's at its highest rate.
	farBehind = 10_000
)

// Ledger returns the checks of the ledger's topic, and of how far the ledger is behind it. placed
// returns the next record of each partition that the database has.
func (k *Kafka) Ledger(placed func(ctx context.Context, topicID string) (map[int32]int64, error)) []Check {
	return []Check{
		{checkLedgerTopic, []string{CheckKafka}, k.ledgerTopic},
		{"ledger-lag", []string{checkLedgerTopic, CheckDatabase}, func(ctx context.Context) Verdict { return k.ledgerLag(ctx, placed) }},
	}
}

// describe returns a topic with the rights of the user.
func (k *Kafka) describe(ctx context.Context, name string) (kafka.TopicDescription, error) {
	found, err := k.client.Rights(ctx, name)
	if err != nil {
		return kafka.TopicDescription{}, err
	}
	return found[0], nil
}

func (k *Kafka) ledgerTopic(ctx context.Context) Verdict {
	found, err := k.describe(ctx, k.names.Ledger)
	if err == nil && found.Error.Code() != kafka.ErrUnknownTopicOrPart && found.Error.Code() != kafka.ErrNoError {
		err = found.Error
	}
	switch {
	case err != nil:
		return k.unasked(err)
	case found.Error.Code() == kafka.ErrUnknownTopicOrPart:
		return failf("there is no topic %s: writers make it once a class has ledger: true", k.names.Ledger)
	}
	topics := []topic{{name: k.names.Ledger, retention: -1, retentionBytes: -1}}
	if err := k.settings(ctx, topics); err != nil && !kafka.Refused(err) {
		return k.unasked(err)
	} else if err != nil {
		return warnf("the settings of topic %s are unknown: check that its retention.ms is %d or more: %s", k.names.Ledger, shortLedger.Milliseconds(), k.explain(err))
	}
	return judgeLedgerTopic(topics[0], len(found.Partitions))
}

// judgeLedgerTopic judges whether the topic keeps changes while the database is away.
func judgeLedgerTopic(t topic, partitions int) Verdict {
	kept := time.Duration(t.retention) * time.Millisecond
	switch {
	case strings.Contains(t.policy, "compact"):
		return failf("topic %s has cleanup.policy=%s, which removes changes: set delete", t.name, t.policy)
	case t.retention >= 0 && t.retention < shortLedger.Milliseconds():
		return warnf("topic %s keeps changes for %v: changes are lost if the database is away for longer; set retention.ms=%d or more", t.name, kept, shortLedger.Milliseconds())
	case t.retentionBytes >= 0:
		return warnf("topic %s is cut at %d bytes a partition: changes are lost that the database has not written by then; set retention.bytes=-1", t.name, t.retentionBytes)
	case t.retention < 0:
		return okf("%d partitions, changes are kept for ever", partitions)
	}
	return okf("%d partitions, changes are kept for %v", partitions, kept)
}

func (k *Kafka) ledgerLag(ctx context.Context, placed func(ctx context.Context, topicID string) (map[int32]int64, error)) Verdict {
	found, err := k.describe(ctx, k.names.Ledger)
	if err != nil {
		return k.unasked(err)
	}
	first, err := k.client.Offsets(ctx, k.names.Ledger, len(found.Partitions), kafka.First)
	if err != nil {
		return k.unasked(err)
	}
	next, err := placed(ctx, found.TopicID.String())
	if err != nil {
		return Unasked(fmt.Errorf("the ledger's offsets in the topic: %w", err))
	}
	ends, err := k.client.Offsets(ctx, k.names.Ledger, len(found.Partitions), kafka.End) // after the places, which are never beyond it
	if err != nil {
		return k.unasked(err)
	}
	return judgeLag(first, next, ends)
}

// judgeLag compares the places of the database with the ends of the topic, by partition.
func judgeLag(first, next, ends map[int32]int64) Verdict {
	var behind, gone int64
	fresh := 0
	for p, end := range ends {
		at, begun := next[p]
		switch {
		case !begun:
			fresh++
			at = first[p]
		case at > end:
			return failf("the database has read partition %d up to %d, but the topic ends at %d: it was made anew, or --database belongs to another Kafka; if on purpose, give the topic another name", p, at, end)
		}
		gone += max(0, first[p]-at)
		behind += max(0, end-max(at, first[p]))
	}
	switch {
	case gone > 0:
		return failf("%d changes are gone from the topic before the ledger read them: see the runbook RankcacheLedgerSkipped; %d more are not written yet", gone, behind)
	case behind > farBehind:
		return warnf("%d changes are not written yet: check that rankcache ledger is running, and its /status", behind)
	case fresh > 0:
		return okf("%d changes are not written yet, %d of %d partitions were never read: start rankcache ledger", behind, fresh, len(ends))
	}
	return okf("%d changes are not written yet", behind)
}
