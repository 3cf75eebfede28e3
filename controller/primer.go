package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/kafka"
	"rankcache/internal/redisclock"
	"rankcache/internal/tick"
	"rankcache/rooms"
	"rankcache/wire"
)

const (
	primeEvery = 5 * time.Second // the time between two looks at rolling boards
	markEvery  = 2 * time.Second // how often the boards that were primed are marked while others are
	markTries  = 10              // how often a look tries to mark what it has sent; the next look reads all days again
)

// primer gives rolling boards what ended periods give them; the next leader finds it, and does no prime twice.
type primer struct {
	*term // of its own; its gate tells what is applied
	limit *rate.Limiter
	sent  []*rollingBoard // whose primes Kafka has, and which are not marked yet
	next  []kafka.Offset  // behind their primes
	mark  time.Time       // when they are to be marked
}

func newPrimer(c *Controller, k *kafkaClient) *primer {
	return &primer{term: newTerm(c, k), limit: rate.NewLimiter(rate.Limit(c.opts.PrimeRate), primesAtOnce)}
}

// run looks after rolling boards until ctx is done.
func (p *primer) run(ctx context.Context) {
	for range tick.NowAndEvery(ctx, min(primeEvery, 5*p.opts.Every)) {
		err := p.clock.Agrees(ctx, redisclock.Good, ClockMargin)
		if err == nil {
			err = p.look(ctx)
		}
		if err != nil && ctx.Err() == nil {
			p.failed("primes", err)
		}
	}
}

// rollingBoard is a board of a rolling class, of the running period or of the next one.
type rollingBoard struct {
	class.Board
	kind, of *rooms.Class
	meta     wire.Meta
	made     bool      // the board is there
	ready    time.Time // the period before it has begun, and the grace of the one before that is over
	sources  []source  // that have a board
	digest   string    // of these, in the order ids of their primes
	primes   int       // that it has to have
}

// source is a board of an ended period.
type source struct {
	board rankcache.BoardID
	meta  wire.Meta
}

// look primes each board that needs it and can be primed, and marks those that have all of it.
func (p *primer) look(ctx context.Context) error {
	p.waits, p.sent, p.next = "", nil, nil
	boards, err := p.unprimed(ctx)
	if err != nil {
		return err
	}
	var ready []*rollingBoard
	var last time.Time
	for _, b := range boards {
		if !p.now().After(b.ready.Add(p.opts.PostTimeout)) {
			p.waitFor("the period before that of board %s and its grace are not over", b.ID)
			continue
		}
		if ready = append(ready, b); b.ready.After(last) {
			last = b.ready
		}
	}
	var failed error
	if len(ready) > 0 {
		if failed = p.passApplied(ctx, last); failed == nil && p.durable.eras != "" && last.Before(p.durable.passed) {
			failed = p.prime(ctx, ready)
		}
	}
	p.observe(boards)
	return failed
}

// unprimed returns the boards that are not primed: those of running periods first.
func (p *primer) unprimed(ctx context.Context) (boards []*rollingBoard, err error) {
	file := p.opts.Tiers.File()
	if !slices.ContainsFunc(file.Classes, (*rooms.Class).Rolls) {
		return nil, nil
	}
	ids, err := p.opts.Redis.ZRange(ctx, p.opts.Names.Ends, 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read the index of ends: %w", err)
	}
	seen := make(map[string]bool)
	var next []*rollingBoard
	for _, id := range ids {
		b, kind, ok := file.Board(rankcache.BoardID(id))
		if !ok {
			continue
		}
		names := kind.RolledBy
		if kind.Rolls() {
			names = []string{kind.Name()}
		}
		for _, name := range names {
			running, err := newRolling(file, name, b.Dims, p.now())
			if err != nil || seen[string(running.ID)] {
				continue
			}
			seen[string(running.ID)] = true
			boards = append(boards, running)
			if after, err := newRolling(file, name, b.Dims, running.Period.End); err == nil {
				next = append(next, after)
			}
		}
	}
	return p.withMetas(ctx, append(boards, next...))
}

// newRolling returns the rolling board of a class whose period a time is in.
func newRolling(file *rooms.File, name string, dims map[string]string, at time.Time) (*rollingBoard, error) {
	kind := file.Class(name)
	if kind == nil || file.Class(kind.Rolling.Of) == nil {
		return nil, fmt.Errorf("class %s is not rolling", name)
	}
	board, err := kind.At(dims, at)
	if err != nil {
		return nil, err
	}
	before, err := kind.Calendar().Previous(board.Period)
	return &rollingBoard{Board: board, kind: kind, of: file.Class(kind.Rolling.Of), ready: before.Start.Add(kind.Grace)}, err
}

// withMetas returns the boards that are not primed nor closed, with their metas.
func (p *primer) withMetas(ctx context.Context, all []*rollingBoard) (open []*rollingBoard, err error) {
	for some := range slices.Chunk(all, batchSize) {
		replies := make([]*redis.StringCmd, len(some))
		_, _ = p.opts.Redis.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each reply has its own error
			for i, b := range some {
				replies[i] = pipe.Get(ctx, p.opts.Names.MetaKey(b.ID))
			}
			return nil
		})
		for i, b := range some {
			b.meta, b.made, err = metaOf(replies[i])
			if errors.Is(err, wire.ErrMeta) {
				p.waitFor("board %s: %s", b.ID, err)
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("board %s: %w", b.ID, err)
			}
			if !b.meta.Primed && b.meta.Life < wire.LifeClosed {
				open = append(open, b)
			}
		}
	}
	return open, nil
}

func metaOf(reply *redis.StringCmd) (m wire.Meta, found bool, err error) {
	value, err := reply.Result()
	if errors.Is(err, redis.Nil) {
		return m, false, nil
	}
	if err == nil {
		m, err = wire.ParseMeta(value)
	}
	return m, err == nil, err
}

// prime sends the primes of boards, and marks these.
func (p *primer) prime(ctx context.Context, boards []*rollingBoard) (failed error) {
	eras := p.durable.eras
	for _, b := range boards {
		ok, err := p.find(ctx, b)
		if ok && err == nil {
			if err = p.send(ctx, b); err == nil && (b.made || b.primes > 0) {
				p.sent = append(p.sent, b)
			}
		}
		if err != nil {
			failed = cmp.Or(failed, fmt.Errorf("board %s: %w", b.ID, err))
		}
		if len(p.sent) > 0 && p.now().After(p.mark) {
			p.mark = p.now().Add(markEvery)
			_, err := p.markSent(ctx, eras)
			failed = cmp.Or(failed, err)
		}
		if ctx.Err() != nil {
			return failed
		}
	}
	for tries := 1; len(p.sent) > 0; tries++ {
		lacks, err := p.markSent(ctx, eras)
		if err != nil || lacks == "" {
			return cmp.Or(failed, err)
		}
		if tries == markTries || !tick.Sleep(ctx, p.opts.Every) {
			p.waitFor("%s", lacks)
			break
		}
	}
	return failed
}

// find finds the boards that a rolling one is the sum of, and reports whether they are as they will stay.
func (p *primer) find(ctx context.Context, b *rollingBoard) (bool, error) {
	if b.made {
		first, err := p.opts.Redis.HGet(ctx, p.opts.Names.OrdersKey(b.ID, wire.PrimeSet, 0), "").Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return false, err
		}
		if first != wire.Whole {
			p.waitFor("board %s lacks increments of before its birth: its class is newer, or it was deleted or changed by hand", b.ID)
			return false, nil
		}
	}
	sums := make(map[rankcache.BoardID]uint64)
	boards, metas, err := p.sourceMetas(ctx, b)
	if err != nil {
		return false, err
	}
	for i, from := range boards {
		meta, found, err := metaOf(metas[i])
		switch over := from.Period.End.Add(b.of.Keep); {
		case err != nil:
			return false, fmt.Errorf("board %s: %w", from.ID, err)
		case !found && !p.now().Before(over):
			p.waitFor("board %s, which board %s is to be given, may have expired: its class keeps boards for %v", from.ID, b.ID, b.of.Keep)
			return false, nil
		case !found: // no command has made it
			continue
		case meta.Life < wire.LifeClosed || meta.Adopting || !meta.HasSum:
			p.waitFor("board %s, which board %s is to be given, is not closed", from.ID, b.ID)
			return false, nil
		}
		b.sources = append(b.sources, source{from.ID, meta})
		sums[from.ID] = meta.Sum
	}
	b.digest = wire.PrimesOf(sums)
	return true, nil
}

// sourceMetas returns the boards that a rolling one is the sum of, and their metas, asked for together.
func (p *primer) sourceMetas(ctx context.Context, b *rollingBoard) (boards []class.Board, metas []*redis.StringCmd, err error) {
	periods, err := b.kind.Sources(b.Period)
	if err != nil {
		return nil, nil, err
	}
	for _, period := range periods {
		from, err := b.of.In(b.Dims, period)
		if err != nil {
			return nil, nil, err
		}
		boards = append(boards, from)
	}
	_, _ = p.opts.Redis.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each reply has its own error
		for _, from := range boards {
			metas = append(metas, pipe.Get(ctx, p.opts.Names.MetaKey(from.ID)))
		}
		return nil
	})
	return boards, metas, nil
}

// observe tells how many boards of running periods are incomplete, and what they wait for.
func (p *primer) observe(boards []*rollingBoard) {
	incomplete, now, waits := 0, p.now(), p.waits
	for _, b := range boards {
		if b.made && !b.marked() && !now.Before(b.Period.Start) {
			incomplete++
		}
	}
	p.metrics.incomplete.Set(float64(incomplete))
	p.note(func(s *Status) { s.Incomplete, s.PrimesWaitFor = incomplete, waits })
}

func (b *rollingBoard) marked() bool { return b.meta.Primed }

// markSent marks the boards whose primes are all applied, as the masters tell. It returns what is not applied yet.
func (p *primer) markSent(ctx context.Context, eras string) (lacks string, failed error) {
	topic, err := p.kafka.topicID(ctx)
	if err != nil || topic != p.durable.topic {
		return "", err
	}
	now, lacks, err := p.applied(ctx, topic, p.next)
	switch {
	case err != nil:
		return "", fmt.Errorf("positions of the masters of Redis: %w", err)
	case lacks != "":
		return lacks, nil
	case now != eras: // what was read may be of a server that has lost some of it
		p.waitFor("Redis has failed over: the boards are read again")
		return "", nil
	}
	for _, b := range p.sent {
		if err := p.markOne(ctx, b, eras); err != nil {
			failed = cmp.Or(failed, fmt.Errorf("board %s: %w", b.ID, err))
		}
	}
	p.sent = slices.DeleteFunc(p.sent, (*rollingBoard).marked)
	return "", failed
}

func (p *primer) markOne(ctx context.Context, b *rollingBoard, eras string) error {
	names := p.opts.Names
	meta, found, err := metaOf(p.opts.Redis.Get(ctx, names.MetaKey(b.ID)))
	if err != nil || !found {
		return err
	}
	keys := []string{names.BoardKey(b.ID), names.MetaKey(b.ID)}
	for bucket := range int(meta.Buckets) {
		keys = append(keys, names.OrdersKey(b.ID, wire.PrimeSet, bucket))
	}
	answer, err := primedScript.Run(ctx, p.opts.Redis, keys, b.primes, eras).Text()
	switch {
	case err != nil:
		return err
	case answer == "ok":
		b.meta.Primed = true
		p.log.Info("rolling board primed", "board", b.ID, "members", b.primes)
	case strings.Trim(answer, "0123456789") == "":
		p.waitFor("board %s has %s primes, want %d: check what update_rank_refused tells of those that are missing, and that all writers are of one version; more than that are of a day that was changed meanwhile", b.ID, answer, b.primes)
	default:
		p.waitFor("board %s can't be marked as primed: %s", b.ID, answer)
	}
	return nil
}
