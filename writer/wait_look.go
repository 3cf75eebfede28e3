package writer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"rankcache/internal/masters"
	"rankcache/internal/tick"
	"rankcache/wire"
	"rankcache/writer/internal/rewind"
)

const readTopicEvery = 10 * time.Second // how often it is looked whether the command topic was made again

// answer answers the posts of this writer, and leaves the refusals of others.
func (p *processor) answer(ctx context.Context, all []heard) {
	var others []heard
	for _, h := range all {
		if !p.waits.tell(h.post, h.verdict) && h.Refusal != nil {
			others = append(others, h)
		}
	}
	p.leaveRefusals(ctx, others)
}

// leftRefusal is a refusal that the reader of one writer leaves in Redis for a post that waits in another.
type leftRefusal struct {
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

// leaveRefusals leaves the reasons of refused commands. Without one the post is answered by the position.
func (p *processor) leaveRefusals(ctx context.Context, all []heard) {
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	_, _ = p.applier.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, h := range all {
			text, _ := json.Marshal(leftRefusal{h.Refusal.Reason, h.Refusal.Err.Error()}) // strings only
			pipe.Set(ctx, p.opts.Names.AppliedKey(h.post), text, PostTimeout)
		}
		return nil
	})
}

// looker answers the posts that wait for the readers of other writers by what Redis has.
type looker struct {
	*processor
	topic string // id of the command topic
	asked time.Time
	limit rate.Sometimes
}

// run looks until ctx ends, while posts wait.
func (l *looker) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.waits.begun:
		}
		for range tick.Every(ctx, lookAtPosts) {
			due, some := l.waits.due()
			if !some {
				break
			}
			if err := l.look(ctx, due); err != nil {
				l.limit.Do(func() { l.log.Warn("posts wait, as Redis does not tell what has become of them", "err", err) })
			}
		}
	}
}

func (l *looker) look(ctx context.Context, posts []*waiting) error {
	if len(posts) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	all, err := l.applier.masters(ctx) // those that answer
	err = errors.Join(err, l.takeRefusals(ctx, posts), l.readTopic(ctx))
	var wg sync.WaitGroup
	for _, m := range all {
		wg.Go(func() { l.lookAt(ctx, m, l.on(ctx, m, posts)) })
	}
	wg.Wait()
	return err
}

func (l *looker) readTopic(ctx context.Context) (err error) {
	if to := l.producer.Load(); to != nil && time.Since(l.asked) >= readTopicEvery {
		if l.topic, err = to.commandTopicID(ctx); err == nil {
			l.asked = time.Now()
		}
	}
	return err
}

// on returns the posts whose boards are on a master.
func (l *looker) on(ctx context.Context, m master, posts []*waiting) (its []*waiting) {
	cluster, ok := l.applier.client.(*redis.ClusterClient)
	if !ok {
		return posts
	}
	for _, one := range posts {
		if node, err := cluster.MasterForKey(ctx, l.opts.Names.BoardKey(one.job.Board)); err == nil && m.client == redis.Cmdable(node) {
			its = append(its, one)
		}
	}
	return its
}

// takeRefusals answers the posts whose refusals other readers have left.
func (l *looker) takeRefusals(ctx context.Context, posts []*waiting) error {
	left := make([]*redis.StringCmd, len(posts))
	_, err := l.applier.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, one := range posts {
			left[i] = p.Get(ctx, l.opts.Names.AppliedKey(one.name))
		}
		return nil
	})
	for i, one := range posts {
		var r leftRefusal
		if json.Unmarshal([]byte(left[i].Val()), &r) == nil {
			l.waits.tell(one.name, verdict{Outcome: Outcome{Refusal: &Refusal{r.Reason, errors.New(r.Detail)}}})
		}
	}
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// lookAt asks a master about posts, as [rewind.Look] tells.
func (l *looker) lookAt(ctx context.Context, m master, posts []*waiting) {
	if len(posts) == 0 {
		return
	}
	hash := l.opts.Names.AppliedKey(string(m.name))
	var before, after func() rewind.History
	positions, records := make([]*redis.StringCmd, len(posts)), make([]recordReply, len(posts))
	_, _ = m.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each reply has its own error
		before = askHistory(ctx, p, hash)
		for i, one := range posts {
			positions[i] = p.HGet(ctx, hash, strconv.Itoa(int(one.at.Partition)))
		}
		for i, one := range posts {
			records[i] = l.applier.askRecord(ctx, p, one.job.Command)
		}
		after = askHistory(ctx, p, hash)
		return nil
	})
	for i, one := range posts {
		record, _, err := records[i]()
		if err != nil {
			continue // it is asked again
		}
		look := rewind.Look{Before: before(), Position: parsePosition(positions[i].Val()), Recorded: record != "", After: after()}
		l.judge(ctx, one, &look, record)
	}
}

// askHistory asks for the history of a master.
func askHistory(ctx context.Context, p redis.Pipeliner, hash string) func() rewind.History {
	info, life := p.Info(ctx, "replication"), p.HGet(ctx, hash, wire.PositionsLife)
	return func() (h rewind.History) {
		era, err := masters.Era(info.Result())
		if err == nil && life.Err() == nil {
			h = rewind.History{Era: rewind.Era(era[:wire.EraLen]), Life: life.Val()}
		}
		return h
	}
}

// judge answers a post if it is known what has become of it.
func (l *looker) judge(ctx context.Context, one *waiting, look *rewind.Look, record string) {
	at, now := one.at, time.Now()
	at.Topic = l.topic
	passed := *look
	passed.Recorded = false
	over := rewind.Judge(now, &at, &passed) == rewind.WasRefused
	j := one.job
	switch rewind.Judge(now, &at, look) {
	case rewind.WasApplied:
		if l.applier.fromRecord(&j, record) != nil {
			return
		}
	case rewind.WasRefused:
		j.Refusal = l.refusedThere(&at)
	default:
		return
	}
	known := func(fed []*job) bool {
		return !slices.ContainsFunc(fed, func(f *job) bool { return !l.isKnown(ctx, f, over, &at) })
	}
	fed := l.fed([]*job{&j})
	if !known(fed.of(0)) {
		return
	}
	if fed, rolled := l.rolled([]*job{&j}, fed); known(rolled) {
		l.waits.tell(one.name, verdict{j.toPost(), fed.of(0)})
	}
}

// isKnown reports whether it is known what has become of a fed board, and sets its outcome.
func (l *looker) isKnown(ctx context.Context, fed *job, over bool, at *rewind.Post) bool {
	if fed.done {
		return true
	}
	record, _, err := l.applier.askRecords(ctx, []*job{fed})[0]()
	switch {
	case err == nil && record != "":
		err = l.applier.fromRecord(fed, record)
	case err == nil && over:
		fed.Refusal, fed.done = l.refusedThere(at), true
	}
	return err == nil && fed.done
}

// refusedThere is the refusal of a command by a reader that could not leave its reason.
func (l *looker) refusedThere(at *rewind.Post) *Refusal {
	return &Refusal{"refused", fmt.Errorf("the reader of partition %d has refused it: a record of topic %s whose source has offset %d has the reason", at.Partition, l.opts.Names.Refused, at.Offset)}
}
