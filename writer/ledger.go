package writer

import (
	"context"
	"slices"
	"strings"
	"time"

	"rankcache/internal/tick"
	"rankcache/rooms"
	"rankcache/wire"
)

// ledgerTopic is the topic of the ledger: it gets the changes of boards of classes with ledger: true.
type ledgerTopic struct {
	name  string
	tiers Tiers
}

// wanted reports whether changes of any board are published.
func (t *ledgerTopic) wanted() bool {
	return slices.ContainsFunc(t.tiers.File().Classes, func(c *rooms.Class) bool { return c.Ledger })
}

// append appends the record of an applied change, duplicates too: its key is the board, which keeps the sequence.
func (t *ledgerTopic) append(messages []message, u *wire.Update, j *job) []message {
	record := wire.LedgerUpdate{Update: *u, Era: j.era, Past: j.past}
	if board, kind, found := t.tiers.File().Board(u.Board); found {
		record.Class, record.Dims, record.Tag = kind.Name(), board.Dims, board.Period.Tag
	}
	return append(messages, message{topic: t.name, key: []byte(u.Board), value: wire.AppendLedgerUpdate(nil, &record), kept: true})
}

const nameEvery = time.Minute // how often a writer names the masters

// nameMasters has the ledger know in each partition which servers this writer takes for the masters, when it reads
// positions and once a minute, until ctx ends. It names only those that have answered a moment ago.
func (w *Writer) nameMasters(ctx context.Context, p *producer) {
	var last *round
	var at time.Time
	for range tick.Every(ctx, lookEvery/4) {
		seen := w.rewinds.seen.Load()
		if seen == nil || w.rewinds.stale(seen.of) || time.Since(seen.at) > 2*lookEvery || seen.of == last && time.Since(at) < nameEvery || !w.ledger.wanted() {
			continue
		}
		if err := p.nameMasters(ctx, w.ledger.name, strings.Fields(seen.of.list)); err != nil {
			w.metrics.rewind.limit.Do(func() { w.log.Warn("the ledger is not told who is master, retrying", "err", err) })
			continue
		}
		last, at = seen.of, time.Now()
	}
}

// nameFirst names the masters of the present round before the first changes of it are published. Else a server whose
// history changes again before the next look would never be named. Its only error is that ctx has ended.
func (p *processor) nameFirst(ctx context.Context, to *producer, messages []message) error {
	of, toLedger := p.rewinds.round.Load(), func(m message) bool { return m.topic == p.ledger.name }
	if of.list == "" || p.named.Load() == of || !slices.ContainsFunc(messages, toLedger) {
		return nil
	}
	_, err, _ := p.naming.Do(of.list, func() (any, error) {
		err := p.retry(ctx, "kafka", func() error { return to.nameMasters(ctx, p.ledger.name, strings.Fields(of.list)) })
		if err == nil {
			p.named.Store(of)
		}
		return nil, err
	})
	return err
}

// nameMasters appends the eras of the masters to each partition of the ledger's topic.
func (p *producer) nameMasters(ctx context.Context, topic string, eras []string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := p.makeTopics(ctx, []string{topic}); err != nil {
		return err
	}
	c, err := p.use()
	if err != nil {
		return err
	}
	n, err := c.Admin.Partitions(ctx, topic)
	c.users.Done()
	messages := make([]message, n)
	for i := range messages {
		messages[i] = message{topic: topic, partition: new(int32(i)), value: wire.AppendEras(nil, eras)} // #nosec G115 -- a partition
	}
	if err == nil {
		_, err = p.send(ctx, messages)
	}
	return err
}
