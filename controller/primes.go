package controller

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/kafka"
	"rankcache/rooms"
	"rankcache/wire"
)

//go:embed primed.lua
var primedSource string

var primedScript = redis.NewScript(wire.Script(primedSource))

const (
	maxSums      = 250_000 // how many members are added up at once: those of a large board in parts, by a hash
	sumPage      = 1000    // how many rows are read at once: 0.3 ms of Redis
	primesAtOnce = 500     // how many primes are sent before Kafka has to acknowledge them
)

// errTooMany reports that a part has more members than are added up at once.
var errTooMany = errors.New("more members than are added up at once")

// errChanged reports that what is added up was changed meanwhile.
var errChanged = errors.New("the rows don't add up to its checksum: it was changed while it was read")

// send sends the primes of a board that it does not have yet.
func (p *primer) send(ctx context.Context, b *rollingBoard) error {
	parts := 1
	for _, from := range b.sources {
		parts = max(parts, int((from.meta.Members+maxSums-1)/maxSums)) // #nosec G115 -- some thousands
	}
	err := p.sendParts(ctx, b, parts)
	for ; errors.Is(err, errTooMany); err = p.sendParts(ctx, b, parts) {
		parts *= 2 // the days have other members
	}
	if needs := float64(b.primes) / b.Period.End.Sub(b.Period.Start).Seconds(); needs > float64(p.opts.PrimeRate) {
		p.log.Warn("the periods of a rolling board are too short for its primes: it stays incomplete", "board", b.ID, "primes_per_s", needs, "prime_rate", p.opts.PrimeRate)
	}
	return err
}

// sendParts adds up the members in so many parts, and sends their primes.
func (p *primer) sendParts(ctx context.Context, b *rollingBoard, parts int) error {
	b.primes = 0
	for part := range parts {
		sums := make(map[string]float64)
		for _, from := range b.sources {
			if err := p.add(ctx, sums, &from, b.of, part, parts); err != nil {
				return fmt.Errorf("reading board %s: %w", from.board, err)
			}
		}
		b.primes += len(sums)
		if err := p.sendSums(ctx, b, sums); err != nil {
			return err
		}
	}
	return nil
}

// add adds the scores of a part of the members of a closed board to their sums.
func (p *primer) add(ctx context.Context, sums map[string]float64, from *source, of *rooms.Class, part, parts int) error {
	sum := uint64(0)
	for first, key := int64(0), p.opts.Names.BoardKey(from.board); ; first += sumPage {
		rows, err := p.opts.Redis.ZRangeWithScores(ctx, key, first, first+sumPage-1).Result()
		if err != nil {
			return err
		}
		for _, row := range rows {
			member, _ := row.Member.(string)
			sum = (sum + wire.Hash(member, row.Score)) & wire.SumMask
			if wire.OrderBucket(member, uint16(parts)) == part { // #nosec G115 -- a small number
				sums[member] += counted(row.Score, of)
			}
		}
		if len(sums) > maxSums {
			return errTooMany
		}
		if len(rows) < sumPage {
			break
		}
	}
	if err := p.addHidden(ctx, sums, from, of, part, parts); err != nil {
		return err
	}
	meta, _, err := metaOf(p.opts.Redis.Get(ctx, p.opts.Names.MetaKey(from.board)))
	if err == nil && (meta.State != from.meta.State || sum != from.meta.Sum) {
		err = errChanged
	}
	return err
}

// addHidden adds those of hidden members, which go on counting.
func (p *primer) addHidden(ctx context.Context, sums map[string]float64, from *source, of *rooms.Class, part, parts int) error {
	if !from.meta.HasHidden {
		return nil
	}
	hidden, err := p.opts.Redis.HGetAll(ctx, p.opts.Names.CompanionKey(from.board, wire.Hidden)).Result()
	for member, value := range hidden {
		v, raw, ok := wire.ParseHidden(value)
		if ok && v.Hidden && !v.Bare && wire.OrderBucket(member, uint16(parts)) == part { // #nosec G115 -- a small number
			sums[member] += counted(raw, of)
		}
	}
	return err
}

// counted returns what the increments of a member have added up to: without the tie-break.
func counted(raw float64, of *rooms.Class) float64 {
	if of.Ties != rooms.TiesMember {
		raw = math.Floor(raw)
	}
	return raw + 0 // -0 becomes 0
}

func (p *primer) sendSums(ctx context.Context, b *rollingBoard, sums map[string]float64) error {
	members := make([]string, 0, len(sums))
	for member := range sums {
		members = append(members, member)
	}
	for some := range slices.Chunk(members, primesAtOnce) {
		lack, err := p.lacking(ctx, b, some)
		if err != nil {
			return err
		}
		if err := p.limit.WaitN(ctx, len(lack)); err != nil {
			return err
		}
		messages := make([]*kafka.Message, len(lack))
		for i, member := range lack {
			messages[i] = &kafka.Message{TopicPartition: kafka.On(p.opts.Names.Commands, kafka.PartitionAny), Key: []byte(member),
				Value: wire.Prime(b.ID, b.Period.Tag, b.digest, member, sums[member], b.ready.Add(-b.kind.Grace).UnixMilli())}
		}
		acked, err := p.kafka.producer.Send(ctx, messages...)
		if err != nil {
			return fmt.Errorf("append primes to %s: %w", p.opts.Names.Commands, err)
		}
		p.metrics.primes.Add(float64(len(acked)))
		p.noteSent(acked)
	}
	return nil
}

// noteSent notes how far the topic has to be applied.
func (p *primer) noteSent(acked []*kafka.Message) {
	for _, m := range acked {
		at := int(m.TopicPartition.Partition)
		for len(p.next) <= at {
			p.next = append(p.next, 0)
		}
		p.next[at] = max(p.next[at], m.TopicPartition.Offset+1)
	}
}

// lacking returns those of some members whose prime the board does not have.
func (p *primer) lacking(ctx context.Context, b *rollingBoard, members []string) (lack []string, err error) {
	if !b.made {
		return members, nil
	}
	known := make([]*redis.BoolCmd, len(members))
	_, err = p.opts.Redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, member := range members {
			order := wire.PrimeOrder(b.Period.Tag, b.digest, member)
			key := p.opts.Names.OrdersKey(b.ID, wire.PrimeSet, wire.OrderBucket(order, b.meta.Buckets))
			known[i] = pipe.HExists(ctx, key, wire.OrderField(order))
		}
		return nil
	})
	for i, member := range members {
		if !known[i].Val() {
			lack = append(lack, member)
		}
	}
	return lack, err
}
