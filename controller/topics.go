package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/class"
	"rankcache/rooms"
	"rankcache/wire"
)

const (
	// maxDots is how many dots a topic's name may have for its board to be looked up:
	// each stands for "." or ":" in the id.
	maxDots       = 5
	lookUpsAtOnce = 200 // how many topics are looked up in one pipeline
)

// owner is what a topic's name tells of its boards.
type owner struct {
	topic  string
	boards []rankcache.BoardID // that it can be of; none if boards share it
	due    time.Time           // when the boards of a class are gone; zero if the name does not tell
}

// owners tells the owner of a topic from its name. The zero value is ready to use.
type owners struct {
	file   *rooms.File
	dotted []*class.Class // the file's classes, with ids as topics spell them
}

func (o *owners) use(file *rooms.File) error {
	if o.file == file {
		return nil
	}
	dotted := make([]*class.Class, len(file.Classes))
	for i, c := range file.Classes {
		var err error
		if dotted[i], err = class.New(c.Name(), strings.ReplaceAll(c.Template(), ":", "."), c.Calendar()); err != nil {
			return err
		}
		if c.Split() {
			if dotted[i], err = dotted[i].Split(c.Shards()); err != nil {
				return err
			}
		}
	}
	o.file, o.dotted = file, dotted
	return nil
}

func (o *owners) of(topic string, names wire.Names) owner {
	if name, ok := strings.CutPrefix(topic, names.ClassPrefix); ok {
		if due, ok := o.dayOver(name); ok || !strings.HasPrefix(topic, names.UpdatePrefix) {
			return owner{topic: topic, due: due} // shared by boards that the name does not tell
		}
	}
	id := strings.TrimPrefix(topic, names.UpdatePrefix)
	for i, c := range o.file.Classes {
		if b, ok := o.dotted[i].Parse(rankcache.BoardID(id)); ok {
			return boardOwner(topic, b, c)
		}
	}
	found := owner{topic: topic}
	if other, ok := wire.UnescapeTopic(id); ok { // else the boards are not known
		if found.boards = spellings(id); other != id && found.boards != nil {
			found.boards = append(found.boards, spellings(other)...)
		}
	}
	return found
}

// boardOwner returns the owner of the topic of a board of a class, whose id may be spelled as topics are.
func boardOwner(topic string, b class.Board, c *rooms.Class) owner {
	found := owner{topic: topic}
	if b, err := b.As(c.Class); err == nil { // as it parsed
		found.boards = []rankcache.BoardID{b.ID}
	}
	if c.Calendar().Periodic() {
		found.due = b.Period.End.Add(c.Keep)
	}
	return found
}

// dayOver returns when the boards are gone that share the topic of a class and date.
func (o *owners) dayOver(name string) (due time.Time, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 || o.file.Class(name[:i]) == nil {
		return due, false
	}
	c := o.file.Class(name[:i])
	end, ok := c.DayEnd(name[i+1:])
	if !ok {
		return due, false
	}
	return end.Add(c.Keep), true
}

// spellings returns the boards whose topic ends with the name: each dot may be a colon.
func spellings(name string) []rankcache.BoardID {
	parts := strings.Split(name, ".")
	if len(parts) > maxDots+1 || rankcache.BoardID(name).Check() != nil {
		return nil
	}
	ids := []rankcache.BoardID{rankcache.BoardID(parts[0])}
	for _, part := range parts[1:] {
		longer := make([]rankcache.BoardID, 0, 2*len(ids))
		for _, id := range ids {
			longer = append(longer, id+"."+rankcache.BoardID(part), id+":"+rankcache.BoardID(part))
		}
		ids = longer
	}
	return ids
}

type topicEnder struct {
	leading
	owners owners
}

func (t *topicEnder) lookAtTopics(ctx context.Context) error {
	if err := t.owners.use(t.opts.Tiers.File()); err != nil {
		return err
	}
	names, err := t.kafka.topics(ctx)
	if err != nil {
		return err
	}
	ending, err := t.ending(ctx)
	if err != nil {
		return err
	}
	var ended, other []owner
	for _, name := range names {
		o := t.owners.of(name, t.opts.Names)
		switch {
		case o.due.IsZero():
			other = append(other, o)
		case t.now().After(o.due) && !ending[name] && !t.wanted(o):
			ended = append(ended, o)
		}
	}
	if ended, err = t.withoutBoard(ctx, ended); err != nil {
		return err
	}
	if err := t.remove(ctx, "class", ended); err != nil {
		return err
	}
	return t.lookAtOthers(ctx, other)
}

// ending returns the topics of boards that are not closed, or have no final yet.
func (t *topicEnder) ending(ctx context.Context) (map[string]bool, error) {
	ids, err := t.opts.Redis.ZRange(ctx, t.opts.Names.Ends, 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read the index of ends: %w", err)
	}
	topics := make(map[string]bool)
	for _, id := range ids {
		b := rankcache.BoardID(id)
		topics[t.opts.Names.Topic(b)] = true
		if b, _, ok := t.owners.file.Board(b); ok {
			topics[b.Topic(t.opts.Names)] = true
		}
	}
	return topics, nil
}

// wanted reports whether sidecars keep a board of the topic in memory.
func (t *topicEnder) wanted(o owner) bool {
	for _, b := range o.boards {
		if t.opts.Tiers.Mode(b, "") == rooms.ModeSuperHot {
			return true
		}
	}
	return false
}

// withoutBoard returns those topics whose boards are not in Redis.
func (t *topicEnder) withoutBoard(ctx context.Context, all []owner) (absent []owner, err error) {
	for some := range slices.Chunk(all, lookUpsAtOnce) {
		found := make([][]*redis.IntCmd, len(some))
		_, err := t.opts.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, o := range some {
				for _, b := range o.boards {
					found[i] = append(found[i], p.Exists(ctx, t.opts.Names.BoardKey(b)), p.Exists(ctx, t.opts.Names.MetaKey(b)))
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("look for boards: %w", err)
		}
		for i, o := range some {
			there := int64(0)
			for _, n := range found[i] {
				there += n.Val()
			}
			if there == 0 {
				absent = append(absent, o)
			}
		}
	}
	return absent, nil
}

// lookAtOthers deletes topics of boards without an end that Redis has not known for so long, as it tells itself.
func (t *topicEnder) lookAtOthers(ctx context.Context, all []owner) error {
	key := t.opts.Names.AbsentTopics
	known, err := t.opts.Redis.HGetAll(ctx, key).Result()
	if err != nil {
		return fmt.Errorf("read the absent topics: %w", err)
	}
	absent, err := t.withoutBoard(ctx, all)
	if err != nil {
		return err
	}
	now := t.now()
	var over []owner
	var first []any
	waiting := 0
	for _, o := range absent {
		if t.wanted(o) || len(o.boards) == 0 && strings.HasPrefix(o.topic, t.opts.Names.UpdatePrefix) {
			continue // kept here, or too many dots to look it up
		}
		ms, err := strconv.ParseInt(known[o.topic], 10, 64)
		delete(known, o.topic)
		switch since := time.UnixMilli(ms); {
		case err != nil || since.After(now):
			first = append(first, o.topic, now.UnixMilli())
		case t.opts.TopicKeep > 0 && now.Sub(since) >= t.opts.TopicKeep:
			over = append(over, o)
			continue
		}
		waiting++
	}
	t.metrics.absent.Set(float64(waiting))
	t.note(func(s *Status) { s.AbsentTopics, s.TopicsAt = waiting, now })
	if err := t.keepAbsent(ctx, first, known); err != nil {
		return err
	}
	return t.remove(ctx, "unknown", over)
}

// keepAbsent notes in Redis the topics that are absent for the first time, and forgets those that are no longer.
func (t *topicEnder) keepAbsent(ctx context.Context, first []any, gone map[string]string) error {
	_, err := t.opts.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		if len(first) > 0 {
			p.HSet(ctx, t.opts.Names.AbsentTopics, first...)
		}
		for topic := range gone {
			p.HDel(ctx, t.opts.Names.AbsentTopics, topic)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note the absent topics: %w", err)
	}
	return nil
}

const snapshotsWait = 10 * time.Second // for how long a pass waits for the store of snapshots

// removeSnapshots deletes the snapshots of topics, and returns those that have none any more.
func (t *topicEnder) removeSnapshots(ctx context.Context, topics []string) (without []string, err error) {
	if t.opts.Snapshots == nil {
		return topics, nil
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotsWait)
	defer cancel()
	for i, topic := range topics {
		if err := t.opts.Snapshots.RemoveBelow(ctx, topic); err != nil {
			return topics[:i], fmt.Errorf("delete the snapshots of topic %s, and then the topic: %w", topic, err)
		}
	}
	return topics, nil
}

func (t *topicEnder) remove(ctx context.Context, kind string, topics []owner) error {
	names := make([]string, len(topics))
	for i, o := range topics {
		names[i] = o.topic
	}
	names, kept := t.removeSnapshots(ctx, names)
	if len(names) == 0 {
		return kept
	}
	gone, failed := t.kafka.remove(ctx, names)
	failed = errors.Join(failed, kept)
	t.metrics.deleted.WithLabelValues(kind).Add(float64(len(gone)))
	t.note(func(s *Status) { s.TopicsDeleted += len(gone) })
	if len(gone) == 0 {
		return failed
	}
	t.log.Info("topics deleted", "topics", len(gone), "of", kind, "first", gone[0])
	if err := t.opts.Redis.HDel(ctx, t.opts.Names.AbsentTopics, gone...).Err(); err != nil {
		return fmt.Errorf("forget deleted topics: %w", err)
	}
	return failed
}
