package writer

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
	"rankcache/writer/internal/rewind"
)

//go:embed positions.lua
var positionsSource string

var positionsScript = redis.NewScript(positionsSource)

type positions struct{ *adopter } // keeps how far each master is in the command topic. It is safe for concurrent use.

func (p positions) keys(of rewind.Master) []string { return []string{p.names.AppliedKey(string(of))} }

// read returns a master's positions. ok is false if its era is another one.
func (p positions) read(ctx context.Context, of rewind.Master, era rewind.Era) (h rewind.Hash, ok bool, err error) {
	life := rand.Text()
	reply, err := positionsScript.Run(ctx, p.client, p.keys(of), string(era), life).Result()
	fields, isList := reply.([]any)
	if err != nil || !isList {
		return h, false, err
	}
	all := make(map[string]string, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		name, _ := fields[i].(string)
		all[name], _ = fields[i+1].(string)
	}
	return hashOf(all), true, nil
}

// hash returns a master's hash as it is, without a life if there is none.
func (p positions) hash(ctx context.Context, of rewind.Master) (rewind.Hash, error) {
	fields, err := p.client.HGetAll(ctx, p.keys(of)[0]).Result()
	return hashOf(fields), err
}

// hashOf returns what the fields of a hash tell.
func hashOf(fields map[string]string) rewind.Hash {
	h := rewind.Hash{Life: fields[wire.PositionsLife], Of: make(map[int32]rewind.Position)}
	_, h.Damaged = fields[wire.PositionsDamaged]
	for name, value := range fields {
		if n, err := strconv.ParseInt(name, 10, 32); err == nil {
			h.Of[int32(n)] = parsePosition(value)
		}
	}
	return h
}

// parsePosition returns a position, of no topic if it can't be read.
func parsePosition(text string) rewind.Position {
	p, _ := wire.ParsePosition(text)
	return rewind.Position{Topic: p.Topic, Next: p.Next, Healed: rewind.Era(p.Healed)}
}

func (p positions) write(ctx context.Context, all []rewind.WritePosition) (rewind.Answer, error) {
	one := all[0]
	args := []any{string(one.Era), one.Life}
	for _, w := range all {
		args = append(args, w.Partition, w.Topic, w.Next, digit(w.Heal), digit(w.Reset))
	}
	return answerOf(positionsScript.Run(ctx, p.client, p.keys(one.Master), args...).Text())
}

// markDamaged marks a master, so that boards that begin there are asked for.
func (p positions) markDamaged(ctx context.Context, a rewind.MarkDamaged) (rewind.Answer, error) {
	return answerOf(positionsScript.Run(ctx, p.client, p.keys(a.Master), string(a.Era), a.Life, wire.PositionsDamaged, fmt.Sprint(p.now().UnixMilli(), " ", a.Partitions)).Text())
}

func answerOf(reply string, err error) (rewind.Answer, error) {
	switch {
	case err != nil:
		return rewind.NotWritten, err
	case reply == "s":
		return rewind.OtherEra, nil
	case reply == "gone":
		return rewind.Gone, nil
	}
	return rewind.Wrote, nil
}

// digit is a flag as the script takes it.
func digit(set bool) int {
	if set {
		return 1
	}
	return 0
}
