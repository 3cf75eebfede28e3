package writer

import (
	"context"
	"crypto/rand"
	_ "embed"
	"strconv"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
	"rankcache/writer/internal/rewind"
)

//go:embed positions.lua
var positionsSource string

var positionsScript = redis.NewScript(positionsSource)

// positions keeps how far each master is in the command topic. It is safe for concurrent use.
type positions struct{ *adopter }

func (p positions) keys(of rewind.Master) []string { return []string{p.names.AppliedKey(string(of))} }

// read returns a master's positions. ok is false if its era is another one.
func (p positions) read(ctx context.Context, of rewind.Master, era rewind.Era) (h rewind.Hash, ok bool, err error) {
	life := rand.Text()
	reply, err := positionsScript.Run(ctx, p.client, p.keys(of), string(era), life).Result()
	fields, isList := reply.([]any)
	if err != nil || !isList {
		return h, false, err
	}
	h.Of = make(map[int32]rewind.Position)
	for i := 0; i+1 < len(fields); i += 2 {
		name, _ := fields[i].(string)
		value, _ := fields[i+1].(string)
		if name == wire.PositionsLife {
			h.Life = value
		} else if name == wire.PositionsDamaged {
			h.Damaged = true
		} else if n, err := strconv.ParseInt(name, 10, 32); err == nil {
			h.Of[int32(n)] = parsePosition(value)
		}
	}
	return h, true, nil
}

// parsePosition returns a position, of no topic if it can't be read.
func parsePosition(text string) rewind.Position {
	p, _ := wire.ParsePosition(text)
	return rewind.Position{Topic: p.Topic, Next: p.Next, Healed: rewind.Era(p.Healed)}
}

// write writes positions of one master, all of one round.
func (p positions) write(ctx context.Context, all []rewind.WritePosition) (rewind.Answer, error) {
	one := all[0]
	args := []any{string(one.Era), one.Life}
	for _, w := range all {
		args = append(args, w.Partition, w.Topic, w.Next, digit(w.Heal), digit(w.Reset))
	}
	return answerOf(positionsScript.Run(ctx, p.client, p.keys(one.Master), args...).Text())
}

// answerOf returns what a reply of the script means.
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

// life returns the name of a master's hash, "" if there is none, and whether it is marked as damaged.
func (p positions) life(ctx context.Context, of rewind.Master) (life string, damaged bool, err error) {
	fields, err := p.client.HMGet(ctx, p.keys(of)[0], wire.PositionsLife, wire.PositionsDamaged).Result()
	if err != nil {
		return "", false, err
	}
	life, _ = fields[0].(string)
	return life, fields[1] != nil, nil
}
