package writer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"rankcache/internal/kafka"
	"rankcache/rooms"
	"rankcache/wire"
)

// record appends the commands of durable classes to the command topic before they are applied: if this
// writer dies between, or Redis loses what it did, the one that reads the topic completes them.
//
// What is outside of its time by the clock of this writer, or of Kafka, is decided by the reader at its own place in
// the topic: behind an earlier post of the order, which a writer that hangs or has died may have appended.
func (p *poster) record(ctx context.Context, posts []posted, now time.Time) {
	recorded := p.toRecord(ctx, posts)
	messages := make([]message, len(recorded))
	for i, post := range recorded {
		post.appended, post.wait = true, p.waits.add(post.job)
		messages[i] = message{topic: p.opts.Names.Commands, key: []byte(commandKey(post.Command, post.rules.kind)), value: encodeCommand(post.Command),
			post: post.wait.name, tooLarge: func(err error) { post.err = &Refusal{"size", err} }, appended: func(at kafka.TopicPartition) {
				if post.at = at; post.waits || isClose(post.job, now, p.applier.now()) {
					p.leaveToReader(post)
				}
			}}
	}
	if err := p.publishPosts(ctx, messages); err != nil {
		for _, post := range recorded {
			post.err = cmp.Or(post.err, errors.Join(errNotRecorded, err))
		}
	}
}

// leaveToReader has the reader decide what becomes of a post that was appended.
func (p *poster) leaveToReader(post *posted) {
	post.waits = true
	p.waits.begin(post.wait, post.at)
}

// toRecord returns the posts of durable classes that are to be appended.
func (p *poster) toRecord(ctx context.Context, posts []posted) (recorded []*posted) {
	var waits []*posted
	for i := range posts {
		post := &posts[i]
		kind := post.rules.kind
		if post.err != nil || kind == nil || !kind.Durable {
			continue
		}
		if post.err = p.logFits(ctx, kind); post.err != nil {
			continue
		}
		post.waits = p.waitsFor(kind) || post.outside != nil || post.Op == wire.OpForget // behind what is in the topic of the member
		if recorded = append(recorded, post); post.waits {
			waits = append(waits, post)
		}
	}
	err := p.retry(ctx, "redis", func() error { return p.lookUp(ctx, waits) })
	for _, post := range waits {
		post.err = cmp.Or(post.err, err)
	}
	return slices.DeleteFunc(recorded, func(post *posted) bool { return post.err != nil || post.done })
}

// lookUp looks whether order ids of posts that will wait are known: a repeat is answered at once, and not appended
// again, unless boards that it feeds may lack it. Its error is that of Redis.
func (p *poster) lookUp(ctx context.Context, posts []*posted) error {
	jobs := make([]*job, len(posts))
	for i, post := range posts {
		jobs[i] = post.job
	}
	for i, reply := range p.applier.askRecords(ctx, jobs) {
		post := posts[i]
		record, _, err := reply()
		if refusal := asRefusal(err); refusal != nil {
			post.err, err = refusal, nil
		}
		if err != nil {
			return unavailable(err)
		}
		if record != "" && len(post.rules.kind.Feeds)+len(post.rules.kind.RolledBy) == 0 {
			if err := p.applier.fromRecord(post.job, record); err != nil {
				return err
			}
			post.waits = !post.done
		}
	}
	return nil
}

// logFits returns why a post of a durable class is not to be taken now.
func (p *processor) logFits(ctx context.Context, kind *rooms.Class) error {
	if err := p.rewinds.deniedBy(); err != nil {
		return fmt.Errorf("%w: class %s: %w", errUnfit, kind.Name(), err)
	}
	if p.commands.last.Load() == nil {
		to := p.producer.Load()
		if to == nil {
			return errors.Join(errNotRecorded, errClosed)
		}
		if err := p.retry(ctx, "kafka", func() error { return p.commands.read(ctx, to) }); err != nil {
			return errors.Join(errNotRecorded, err)
		}
	}
	return p.commands.last.Load().fit(kind)
}

// waitsFor reports whether a class's posts wait: it is durable, and sequence matters on a board it changes.
func (p *processor) waitsFor(kind *rooms.Class) bool {
	return kind.Durable && (kind.Ordered() || slices.ContainsFunc(p.opts.Tiers.File().Fed(kind), func(to rooms.Fed) bool { return to.Ordered() }))
}

// clocksDiffer is how far the clocks of Redis and Kafka may differ for a post and its record to be judged alike.
const clocksDiffer = 30 * time.Second

// isClose reports whether a command taken in time, and appended by then, may be outside of its time by its record's.
// Then its post waits: the reader judges, also when it reads the record again.
func isClose(j *job, taken, appended time.Time) bool {
	apart := clocksDiffer.Milliseconds()
	late := j.rules.over != 0 && j.rules.over-appended.UnixMilli() < apart
	return late || max(j.At, j.rules.start)-taken.UnixMilli() > maxAhead.Milliseconds()-apart
}
