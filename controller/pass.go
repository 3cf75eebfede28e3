package controller

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/kafka"
	"rankcache/internal/masters"
	"rankcache/wire"
)

// gate is how far the commands are processed that boards of one kind wait for.
type gate struct {
	marks  *marks    // the last ones; nil: none yet
	passed time.Time // every command that arrived before has been processed
	topic  string    // id of the topic of the marks
	eras   string    // of durable boards: those of the masters, if that is so of their present data
}

// durable reports whether what came of a board's commands is told by positions.
func (e *ended) durable() bool { return e.class != nil && e.class.Durable }

// pass finds out whether the commands that came in time are processed, if a board that is due needs to know.
func (t *term) pass(ctx context.Context, due []ended) error {
	var last, lastDurable time.Time
	for _, e := range due {
		switch {
		case !e.durable() && e.over.After(last):
			last = e.over
		case e.durable() && t.boards[e.board].life < wire.LifeClosed && e.over.After(lastDurable):
			lastDurable = e.over
		}
	}
	t.durable.eras = ""
	if !last.IsZero() {
		if err := t.passCommitted(ctx, last); err != nil {
			return err
		}
	}
	if lastDurable.IsZero() {
		return nil
	}
	return t.passApplied(ctx, lastDurable)
}

// mark appends markers where boards that end up to a time need later ones, and reports whether there are some now.
func (t *term) mark(ctx context.Context, g *gate, last time.Time) (bool, error) {
	topic, err := t.kafka.topicID(ctx)
	if err != nil {
		return false, err
	}
	if g.topic != topic { // made again
		g.marks, g.topic = nil, topic
	}
	if (g.marks == nil || !g.marks.at.After(g.passed)) && !last.Before(g.passed) {
		m, err := t.kafka.mark(ctx, last.Add(time.Millisecond))
		if err != nil {
			return false, err
		}
		if m != nil {
			g.marks = m
		} else {
			t.waitFor("the clock of Kafka is behind")
		}
	}
	return g.marks != nil, nil
}

// passCommitted has boards pass by what the writers' group has committed.
func (t *term) passCommitted(ctx context.Context, last time.Time) error {
	if ok, err := t.mark(ctx, &t.plain, last); !ok || err != nil || !t.plain.marks.at.After(t.plain.passed) {
		return err
	}
	at, err := t.kafka.committed(ctx, t.plain.marks)
	if err != nil {
		return err
	}
	for p, next := range t.plain.marks.next {
		if at[int32(p)] < int64(next) {
			t.waitFor("partition %d of the command topic is committed up to %d, and the mark is before %d", p, max(at[int32(p)], 0), next)
			return nil
		}
	}
	t.plain.passed = t.plain.marks.at
	return nil
}

// passApplied has boards pass by what the masters tell. It is asked at each look: the master may be another one.
func (t *term) passApplied(ctx context.Context, last time.Time) error {
	g := &t.durable
	if ok, err := t.mark(ctx, g, last); !ok || err != nil {
		return err
	}
	eras, lacks, err := t.applied(ctx, g.topic, g.marks.next)
	switch {
	case err != nil:
		t.waitFor("durable boards need the positions of the masters of Redis: %s", err)
		return fmt.Errorf("positions of the masters of Redis: %w", err)
	case lacks != "":
		t.waitFor("%s", lacks)
	default:
		g.eras, g.passed = eras, g.marks.at
	}
	return nil
}

// applied returns the eras of all masters if everything before the marks is applied and published, or what one lacks.
func (t *term) applied(ctx context.Context, topic string, next []kafka.Offset) (eras, lacks string, err error) {
	var mu sync.Mutex
	var all []string
	err = masters.Each(ctx, t.opts.Redis, func(ctx context.Context, tag string, node redis.Cmdable) error {
		var info *redis.StringCmd
		var fields *redis.MapStringStringCmd
		_, err := node.TxPipelined(ctx, func(p redis.Pipeliner) error {
			info, fields = p.Info(ctx, "replication"), p.HGetAll(ctx, t.opts.Names.AppliedKey(tag))
			return nil
		})
		if err != nil {
			return err
		}
		era, err := masters.Era(info.Result())
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, era[:wire.EraLen])
		if lack := lacking(fields.Val(), topic, era[:wire.EraLen], next); lack != "" {
			lacks = fmt.Sprintf("%s on master %s", lack, tag)
		}
		return nil
	})
	slices.Sort(all)
	return strings.Join(all, " "), lacks, err
}

// lacking tells which position of a master does not say that all before the marks is there.
func lacking(of map[string]string, topic, era string, next []kafka.Offset) string {
	if of[wire.PositionsDamaged] != "" {
		return "boards that Redis has lost are still to be rebuilt by rankcache ledger"
	}
	for p, next := range next {
		at, ok := wire.ParsePosition(of[strconv.Itoa(p)])
		switch {
		case !ok || at.Topic != topic:
			return fmt.Sprintf("there is no position of partition %d: check that the rooms file of the writers has the durable classes, and that they run:", p)
		case at.Healed != era:
			return fmt.Sprintf("partition %d is read again since the last failover", p)
		case at.Next < int64(next):
			return fmt.Sprintf("the position of partition %d is %d, behind the mark before %d,", p, at.Next, next)
		}
	}
	return ""
}
