package controller

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/rooms"
	"rankcache/wire"
)

//go:embed life.lua
var lifeSource string

var lifeScript = redis.NewScript(wire.Script(lifeSource))

const (
	// pageSize is how many boards are read from the index at once.
	pageSize = 1000
	// batchSize is how many boards are changed in one round trip, which takes Redis some
	// milliseconds.
	batchSize = 500
	// Pauses between attempts to make a final.
	finalEvery, maxFinalPause = 10 * time.Second, 5 * time.Minute
	// finalTimeout bounds one final, and finalsTime the start of finals in one look, so that
	// other boards are closed meanwhile.
	finalTimeout, finalsTime = 10 * time.Minute, 5 * time.Second
)

// ended is a board of the index whose period and grace are over.
type ended struct {
	board rankcache.BoardID
	class *rooms.Class // nil if no class of the file makes the id
	over  time.Time    // end of period and grace
}

// progress is how far this term has come with a board.
type progress struct {
	life  wire.Life
	next  time.Time // when its final is tried again
	pause time.Duration
}

// closeBoards takes each board that is due one step further.
func (t *term) closeBoards(ctx context.Context) error {
	due, err := t.due(ctx)
	if err != nil {
		return err
	}
	var failed error
	if len(due) > 0 {
		failed = t.pass(ctx, due)
	}
	t.finalsUntil = t.now().Add(finalsTime)
	left := make(map[rankcache.BoardID]progress)
	oldest := time.Time{}
	for batch := range slices.Chunk(due, batchSize) {
		moves := t.move(ctx, batch)
		for _, m := range moves {
			if !m.done && t.wantsFinal(m.class) {
				m.err = errors.Join(m.err, t.extend(ctx, m.ended))
			}
			if m.err != nil {
				failed = errors.Join(failed, fmt.Errorf("board %s: %w", m.board, m.err))
			}
			if m.done {
				continue
			}
			left[m.board] = m.progress
			if oldest.IsZero() || m.over.Before(oldest) {
				oldest = m.over
			}
		}
		failed = errors.Join(failed, t.index(ctx, moves))
	}
	t.boards = left
	return errors.Join(failed, t.observe(ctx, len(left), oldest))
}

// due returns the boards of the index whose period and grace are over.
func (t *term) due(ctx context.Context) (due []ended, err error) {
	now, file := t.now(), t.opts.Tiers.File()
	for offset := int64(0); ; offset += pageSize {
		page, err := t.opts.Redis.ZRangeByScoreWithScores(ctx, t.opts.Names.Ends, &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(now.UnixMilli(), 10), Offset: offset, Count: pageSize}).Result()
		if err != nil {
			return nil, fmt.Errorf("read the index of ends: %w", err)
		}
		for _, z := range page {
			id, _ := z.Member.(string)
			e := ended{board: rankcache.BoardID(id), over: time.UnixMilli(int64(z.Score))}
			if _, e.class, _ = file.Board(e.board); e.class != nil {
				e.over = e.over.Add(e.class.Grace)
			}
			if e.over.Before(now) {
				due = append(due, e)
			}
		}
		if len(page) < pageSize {
			return due, nil
		}
	}
}

// pass finds out whether the commands that came in time are processed, if a board that is
// due needs to know.
func (t *term) pass(ctx context.Context, due []ended) (err error) {
	var last time.Time
	for _, e := range due {
		if e.over.After(last) {
			last = e.over
		}
	}
	if t.marks == nil && !last.Before(t.passed) {
		t.marks, err = t.kafka.mark(ctx, last.Add(time.Millisecond))
	}
	if t.marks == nil || err != nil {
		return err
	}
	committed, err := t.kafka.committed(ctx, t.marks)
	if committed {
		t.passed, t.marks = t.marks.at, nil
	}
	return err
}

// move is one step of one board.
type move struct {
	ended
	progress
	done bool  // nothing is left to do
	end  int64 // when its period ends, if that is not what the index has, in Unix milliseconds
	err  error
}

// move takes boards one step further.
func (t *term) move(ctx context.Context, due []ended) []*move {
	moves := make([]*move, len(due))
	wants := make(map[wire.Life][]*move)
	for i, e := range due {
		m := &move{ended: e, progress: t.boards[e.board]}
		want := t.want(ctx, m)
		if moves[i] = m; m.life < want {
			wants[want] = append(wants[want], m)
		}
	}
	for want, of := range wants {
		t.setLives(ctx, of, want)
	}
	for _, m := range moves {
		if m.done || m.err != nil || m.life < wire.LifeClosed {
			continue
		}
		m.done = true
		if m.life == wire.LifeClosed && t.wantsFinal(m.class) {
			t.final(ctx, m)
		}
	}
	return moves
}

// want returns the life that a board may have now.
func (t *term) want(ctx context.Context, m *move) wire.Life {
	if !m.over.Before(t.passed) || !t.now().After(m.over.Add(t.opts.PostTimeout)) {
		return wire.LifeClosing
	}
	if m.life < wire.LifeClosed {
		var settled bool
		if settled, m.err = t.settled(ctx, m.ended); !settled {
			return wire.LifeClosing
		}
	}
	return wire.LifeClosed
}

// settled reports whether the ledger has all of a board, if it is to have any.
func (t *term) settled(ctx context.Context, e ended) (bool, error) {
	if t.opts.Ledger == nil || e.class == nil || !e.class.Ledger {
		return true, nil
	}
	text, err := t.opts.Redis.Get(ctx, t.opts.Names.MetaKey(e.board)).Result()
	if errors.Is(err, redis.Nil) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	meta, err := wire.ParseMeta(text)
	if err != nil {
		return false, err
	}
	settled, err := t.opts.Ledger.Settled(ctx, e.board, meta.State)
	if err != nil {
		err = fmt.Errorf("its ledger: %w", err)
	}
	return settled, err
}

// setLives sets the lives of boards, in one pipeline, unless they are further already.
func (t *term) setLives(ctx context.Context, moves []*move, want wire.Life) {
	now := t.now().UnixMilli()
	replies, history := make([]*redis.Cmd, len(moves)), make([]string, len(moves))
	ask := func(run func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd, of func(int) bool) {
		_, _ = t.opts.Redis.Pipelined(ctx, func(p redis.Pipeliner) error { // each reply has its own error
			for i, m := range moves {
				if of(i) {
					replies[i] = run(ctx, p, []string{t.opts.Names.MetaKey(m.board)}, int(want), now, history[i])
				}
			}
			return nil
		})
	}
	unknown := func(i int) bool { return redis.HasErrorPrefix(replies[i].Err(), "NOSCRIPT") }
	ask(lifeScript.EvalSha, func(int) bool { return true })
	ask(lifeScript.Eval, unknown)
	ask(lifeScript.Eval, func(i int) bool {
		id, err := replies[i].Text()
		history[i] = id
		return err == nil
	})
	for i, m := range moves {
		t.read(m, replies[i], want, now)
	}
}

// read takes the reply of life.lua. It is done with a board that is not there, or whose end is
// another than the index tells.
func (t *term) read(m *move, reply *redis.Cmd, want wire.Life, now int64) {
	answer, err := reply.Int64Slice()
	switch {
	case err != nil:
		m.err = err
	case len(answer) != 2:
		m.err = fmt.Errorf("%d numbers from life.lua, want 2", len(answer))
	case answer[0] == -2:
		m.err = wire.ErrMeta
	case answer[0] == -1 && want == wire.LifeClosing: // a command that came in time may still make it
		m.life = want
	case answer[0] == -1 || answer[1] == 0: // it has expired, or was never made; or it has no end
		m.done = true
	case answer[1] > now:
		m.done, m.end = true, answer[1]
	default:
		m.life = wire.Life(answer[0])
		if m.life == want && want == wire.LifeClosed {
			t.metrics.closed.Inc()
			t.log.Debug("board closed", "board", m.board)
		}
	}
}

// final makes the final of a closed board.
func (t *term) final(ctx context.Context, m *move) {
	m.done = false
	now := t.now()
	if now.Before(m.next) || now.After(t.finalsUntil) {
		return
	}
	m.pause = min(max(2*m.pause, finalEvery), maxFinalPause)
	m.next = now.Add(m.pause)
	if err := t.finish(ctx, m.board); err != nil {
		m.err = fmt.Errorf("its final: %w", err)
		return
	}
	t.setLives(ctx, []*move{m}, wire.LifeFinal)
	m.done = m.err == nil
}

// index takes boards that are done out of the index, or corrects their end in it.
func (t *term) index(ctx context.Context, moves []*move) error {
	var gone []any
	var later []redis.Z
	for _, m := range moves {
		switch {
		case m.end > 0:
			later = append(later, redis.Z{Score: float64(m.end), Member: string(m.board)})
		case m.done:
			gone = append(gone, string(m.board))
		}
	}
	if len(gone)+len(later) == 0 {
		return nil
	}
	_, err := t.opts.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		if len(gone) > 0 {
			p.ZRem(ctx, t.opts.Names.Ends, gone...)
		}
		if len(later) > 0 {
			p.ZAddXX(ctx, t.opts.Names.Ends, later...)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("change the index of ends: %w", err)
	}
	return nil
}

// observe records how many boards are to be closed, and since when the oldest one is.
func (t *term) observe(ctx context.Context, closing int, oldest time.Time) error {
	now, lag, passed := t.now(), 0.0, t.passed
	all, err := t.opts.Redis.ZCard(ctx, t.opts.Names.Ends).Result()
	if err != nil {
		return fmt.Errorf("read the index of ends: %w", err)
	}
	if !oldest.IsZero() {
		lag = now.Sub(oldest).Seconds()
	}
	running := max(int(all)-closing, 0)
	t.metrics.boards.WithLabelValues("running").Set(float64(running))
	t.metrics.boards.WithLabelValues("closing").Set(float64(closing))
	t.metrics.lag.Set(lag)
	t.note(func(s *Status) {
		s.Running, s.Closing = running, closing
		s.Lag, _ = strconv.ParseFloat(strconv.FormatFloat(lag, 'f', 3, 64), 64)
		if !passed.IsZero() {
			s.Passed = &passed
		}
	})
	return nil
}
