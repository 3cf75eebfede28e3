package controller

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

//go:embed life.lua
var lifeSource string

var lifeScript = redis.NewScript(wire.Script(lifeSource))

// secondLook is how long after its close a durable board is looked at again: a failover may have taken that back.
const secondLook = 2 * time.Minute

// progress is how far this term has come with a board.
type progress struct {
	life  wire.Life
	era   string    // of its master when it was closed, if it is durable
	since time.Time // it has been closed or final
	next  time.Time // when its final is tried again
	pause time.Duration
}

// setLives sets the lives of boards in one pipeline, unless they are further already.
func (t *term) setLives(ctx context.Context, moves []*move, want wire.Life) {
	now := t.now()
	replies := make([]*redis.Cmd, len(moves))
	ask := func(run func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd, of func(int) bool) {
		_, _ = t.opts.Redis.Pipelined(ctx, func(p redis.Pipeliner) error { // each reply has its own error
			for i, m := range moves {
				if of(i) {
					replies[i] = run(ctx, p, []string{t.opts.Names.MetaKey(m.board)}, int(want), now.UnixMilli(), t.erasFor(m, want))
				}
			}
			return nil
		})
	}
	ask(lifeScript.EvalSha, func(int) bool { return true })
	ask(lifeScript.Eval, func(i int) bool { return redis.HasErrorPrefix(replies[i].Err(), "NOSCRIPT") })
	for i, m := range moves {
		t.read(m, replies[i], want, now)
	}
}

// erasFor returns the eras in which a board may get a life, as life.lua takes them. Boards are closing in any.
func (t *term) erasFor(m *move, want wire.Life) string {
	switch {
	case !m.durable() || want == wire.LifeClosing:
		return ""
	case want == wire.LifeClosed:
		return t.durable.eras
	}
	return m.era
}

// read takes the reply of life.lua: a missing board or another end is done with, a changed durable one closed anew.
func (t *term) read(m *move, reply *redis.Cmd, want wire.Life, now time.Time) {
	if text, err := reply.Text(); err == nil && text == "s" {
		m.progress = progress{}
		return
	}
	before, finish, era, err := parseLife(reply)
	switch again := want != wire.LifeClosed && before < int64(m.life); {
	case err != nil:
		m.err = err
	case before == -2:
		m.err = wire.ErrMeta
	case before == -1 && want == wire.LifeClosing: // a command that came in time may still make it
		m.life = want
	case again && m.durable():
		m.progress = progress{}
	case before == -1 || finish == 0: // it has expired, or was never made; or it has no end
		m.done = true
	case finish > now.UnixMilli():
		m.done, m.end = true, finish
	case want == wire.LifeOpen:
		m.done = true
	case want == wire.LifeClosing && m.durable(): // who knows in which era it was closed
		m.life = want
	default:
		m.life, m.era, m.since = max(wire.Life(before), want), era, now // #nosec G115 -- of 4 bits
		if want == wire.LifeClosed && before < int64(want) {
			t.metrics.closed.Inc()
			t.log.Debug("board closed", "board", m.board)
		}
	}
}

func parseLife(reply *redis.Cmd) (before, finish int64, era string, err error) {
	list, err := reply.Slice()
	if err != nil {
		return 0, 0, "", err
	}
	if len(list) == 3 {
		var ok [3]bool
		before, ok[0] = list[0].(int64)
		finish, ok[1] = list[1].(int64)
		era, ok[2] = list[2].(string)
		if ok == [3]bool{true, true, true} {
			return before, finish, era, nil
		}
	}
	return 0, 0, "", fmt.Errorf("%v from life.lua, want two numbers and an era", list)
}
