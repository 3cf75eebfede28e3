package replay

import (
	"context"
	"errors"
	"slices"
	"time"
)

// topicChanges are what is to be read from now on, and what no more.
type topicChanges struct {
	stop  []*topic
	start []*beginning
}

// fetchOffsets finds out where the new readings begin, and drops those for which Kafka has no answer. It returns those
// whose log lacks the records after the boards' files.
func (c *topicChanges) fetchOffsets(ctx context.Context, from changeLog) (void []*beginning, err error) {
	var parts []*partition
	for _, b := range c.start {
		parts = append(parts, b.parts...)
	}
	if len(parts) == 0 {
		return nil, nil
	}
	found, err := from.offsets(ctx, parts)
	unknown := func(p *partition) bool { return !p.setOffsets(found) }
	c.start = slices.DeleteFunc(c.start, func(b *beginning) bool { return slices.ContainsFunc(b.parts, unknown) })
	for _, b := range c.start {
		if b.resumeAt != nil && !b.resume() {
			void = append(void, b)
		}
	}
	return void, errors.Join(err, c.skipOlder(ctx, from))
}

// skipOlder has shared topics read from where the updates begin of boards without files, and drops those
// for which Kafka has no answer.
func (c *topicChanges) skipOlder(ctx context.Context, from changeLog) (err error) {
	c.start = slices.DeleteFunc(c.start, func(b *beginning) bool {
		since := b.since()
		if since.IsZero() {
			return false
		}
		found, failed := from.since(ctx, b.parts, since)
		for p, first := range found {
			if b.resumeAt == nil || first < p.from {
				p.start(first)
			}
		}
		err = errors.Join(err, failed)
		return failed != nil
	})
	return err
}

// beginning is where the reading of a topic begins, and the boards for which.
type beginning struct {
	*topic
	// readFor are the boards that it is begun for. resumeAt is where its partitions may begin, because files have the
	// records before of all of them but lacking; nil for the beginning.
	readFor, lacking []*feed
	resumeAt         []int64
}

// newReading returns a reading of a topic for boards, whose offsets are still to be set.
func newReading(info topicInfo, reset bool, boards []*feed) *beginning {
	b := &beginning{topic: newTopic(info, reset), readFor: boards, lacking: boards}
	b.shared = boards[0].log.Shared
	return b
}

// since returns a time before the first update of each board that no file has the beginning of: zero if reading begins
// with the log, or where files end. Only a shared topic is not read from its beginning: it has other boards' updates
// there.
func (b *beginning) since() (since time.Time) {
	for _, f := range b.lacking {
		if first := f.log.First; b.shared && (since.IsZero() || first.Before(since)) {
			since = first
		}
	}
	return since
}

// resumeFrom has reading resume where the boards' files end, at the lowest place of each partition. A board without a
// file of the topic then has it begin at its own first update, if that is earlier; where it shares no topic, that is
// the beginning. The offsets of a file count although Redis has proved its entries void: what Redis has lost is before
// them in the log, and must not be read again.
func (b *beginning) resumeFrom(boards []*feed) {
	var at []int64
	var lacking []*feed
	for _, f := range boards {
		s := f.file.resume.Load()
		if s == nil || s.TopicID != b.id || len(s.Offsets) != len(b.parts) {
			lacking = append(lacking, f)
			continue
		}
		if at == nil {
			at = slices.Clone(s.Offsets)
		}
		for i := range at {
			at[i] = min(at[i], s.Offsets[i])
		}
	}
	reads := func(f *feed) bool { return !b.shared || f.log.First.IsZero() } // from the log's beginning
	if at != nil && !slices.ContainsFunc(lacking, reads) {
		b.resumeAt, b.lacking = at, lacking
	}
}

// resume makes reading begin at resumeAt. It returns false if the log was truncated after that, or ends before: then it
// is read from its beginning, and the gate sees what is missing.
func (b *beginning) resume() bool {
	for i, p := range b.parts {
		if at := b.resumeAt[i]; at < p.low || at > p.high {
			b.resumeAt, b.lacking = nil, b.readFor
			return false
		}
	}
	for i, p := range b.parts {
		p.start(b.resumeAt[i])
	}
	b.resumed = len(b.lacking) == 0
	return true
}
