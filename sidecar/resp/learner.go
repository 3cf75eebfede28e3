package resp

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"rankcache/wire"
)

// learner has the facts of the upstream, and asks it on a connection of its own.
type learner struct {
	upstreams *upstreams
	log       *slog.Logger
	facts     atomic.Pointer[facts]
	asks      chan ask
	away      atomic.Bool   // the upstream could not be reached
	tried     chan struct{} // closed once the upstream has answered or could not be reached
	tries     sync.Once
}

// await returns once the upstream was asked: what is not known yet of its commands would be passed on.
func (l *learner) await() {
	select {
	case <-l.tried:
	case <-time.After(l.upstreams.cfg.UpstreamTimeout):
	}
}

func (l *learner) noteTry() { l.tries.Do(func() { close(l.tried) }) }

// follow keeps the connection open, to learn from each server that is there, and to ask which keys a command has.
func (l *learner) follow(ctx context.Context) error {
	const pause, every = 200 * time.Millisecond, time.Second
	for ctx.Err() == nil {
		err := l.followOne(ctx, every)
		if err != nil && ctx.Err() == nil {
			l.lost(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// followOne learns from the server that is there, and asks whether it still is until it is not.
func (l *learner) followOne(ctx context.Context, every time.Duration) error {
	conn, err := l.upstreams.dial(ctx, greeting{proto: 2, loggedIn: true, db: l.upstreams.cfg.DB})
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	f, err := learn(conn, l.upstreams.cfg.UpstreamTimeout+time.Second, l.upstreams.cfg.Logged != nil)
	if err != nil {
		return err
	}
	l.learned(f)
	if l.upstreams.cfg.OneMaster {
		l.upstreams.closeBut(conn.RemoteAddr().String())
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case a := <-l.asks:
			got, err := askAll(conn, l.upstreams.cfg.UpstreamTimeout, [][]string{a.command})
			if err == nil {
				a.reply <- got[0]
			} else {
				l.lost(err) // first, so that the caller does not ask again
			}
			if close(a.reply); err != nil {
				return err
			}
		case <-time.After(every):
			if _, err := askAll(conn, l.upstreams.cfg.UpstreamTimeout, [][]string{{"PING"}}); err != nil {
				return err
			}
		}
	}
}

// lost takes note that the upstream is away.
func (l *learner) lost(err error) {
	if !l.away.Swap(true) {
		l.log.Warn("RESP: Redis can't be reached: what is not open here gets errors", "err", err)
	}
	l.noteTry()
}

func (l *learner) learned(f *facts) {
	l.facts.Store(f)
	l.away.Store(false)
	l.noteTry()
	l.log.Info("RESP: learned from Redis", "server", f.name)
	if l.upstreams.cfg.Logged != nil && !(f.scripts && f.logs) {
		l.log.Warn("RESP: what clients write to whole boards is not logged, so that these fall behind and are read again: have an ACL grant EVALSHA, EVAL, and XADD on "+wire.LogKey+" (rankcache doctor tells)",
			"may_run_scripts", f.scripts, "may_add", f.logs)
	}
}

// ask is a command for the connection of follow.
type ask struct {
	command []string
	reply   chan []byte // closed without one if the upstream is away
}

// ask returns the upstream's reply.
func (l *learner) ask(command ...string) ([]byte, error) {
	if l.away.Load() {
		return nil, errAway
	}
	a := ask{command, make(chan []byte, 1)}
	limit := time.NewTimer(l.upstreams.cfg.UpstreamTimeout)
	defer limit.Stop()
	select {
	case l.asks <- a:
	case <-limit.C:
		return nil, errAway
	}
	reply, ok := <-a.reply
	if !ok {
		return nil, errAway
	}
	return reply, nil
}
