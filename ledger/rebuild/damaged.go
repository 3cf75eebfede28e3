package rebuild

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/masters"
	"rankcache/wire"
)

// answerSource is a script that answers for a board, or, without one, takes the mark of a damaged master away.
//
//go:embed answer.lua
var answerSource string

var answerScript = redis.NewScript(answerSource)

// errOver tells that a master is not damaged any more, or has another history.
var errOver = errors.New("the master of Redis has another history than when its boards were begun to be rebuilt")

// damaged is a master of Redis that may lack boards, in one history.
type damaged struct {
	tag       string
	era, life string
	since     string // the mark
}

// find returns the damaged masters. Without one its error is that of a master that does not answer.
func (m *Mender) find(ctx context.Context) (all []damaged, err error) {
	var mu sync.Mutex
	err = masters.Each(ctx, m.opts.Redis, func(ctx context.Context, tag string, node redis.Cmdable) error {
		found, err := m.look(ctx, tag, node)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && found.since != "" {
			all = append(all, found)
		}
		return err
	})
	return all, err
}

// look asks a master; since is empty if it is not damaged.
func (m *Mender) look(ctx context.Context, tag string, node redis.Cmdable) (d damaged, err error) {
	var info *redis.StringCmd
	var fields *redis.SliceCmd
	_, err = node.TxPipelined(ctx, func(p redis.Pipeliner) error {
		info, fields = p.Info(ctx, "replication"), p.HMGet(ctx, m.opts.Names.AppliedKey(tag), wire.PositionsLife, wire.PositionsDamaged)
		return nil
	})
	if err != nil {
		return d, err
	}
	era, err := masters.Era(info.Result())
	d = damaged{tag: tag, era: era[:min(len(era), wire.EraLen)]}
	d.life, _ = fields.Val()[0].(string)
	d.since, _ = fields.Val()[1].(string)
	if err == nil && d.life == "" { // nobody would mark it
		err = fmt.Errorf("no writer keeps positions of topic %s in Redis (%s): check that --topic-commands is the writers', and that they run", m.opts.Names.Commands, m.opts.Names.AppliedKey(tag))
	}
	return d, err
}

func (m *Mender) keys(d damaged) []string {
	n := m.opts.Names
	return []string{n.AppliedKey(d.tag), n.WantedKey(d.tag), n.AnswersKey(d.tag)}
}

func (m *Mender) wanted(ctx context.Context, d damaged) (boards []rankcache.BoardID, err error) {
	names, err := m.opts.Redis.SMembers(ctx, m.opts.Names.WantedKey(d.tag)).Result()
	for _, name := range names {
		boards = append(boards, rankcache.BoardID(name))
	}
	return boards, err
}

func (m *Mender) answer(ctx context.Context, d damaged, b rankcache.BoardID, answer string) error {
	return m.call(ctx, d, string(b), answer)
}

// errHealing tells that the writers still read commands again.
var errHealing = errors.New("the writers have not read the command topic to its end since Redis has lost boards: check that they run")

// clear takes a master's mark away, once the writers have read what they read again; before, it is errHealing.
func (m *Mender) clear(ctx context.Context, d damaged) error { return m.call(ctx, d) }

func (m *Mender) call(ctx context.Context, d damaged, args ...any) error {
	reply, err := answerScript.Run(ctx, m.opts.Redis, m.keys(d), append([]any{d.life, d.era}, args...)...).Int()
	switch {
	case err == nil && reply == 0:
		err = errOver
	case err == nil && reply == 2:
		err = errHealing
	}
	return err
}
