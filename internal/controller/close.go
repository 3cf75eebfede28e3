package controller

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/rooms"
	"rankcache/wire"
)

//go:embed life.lua
var lifeSource string

var lifeScript = redis.NewScript(lifeSource)

const (
	// pageSize is how many boards are read from the index at once.
	pageSize = 1000
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
	for _, e := range due {
		done, err := t.move(ctx, e)
		if !done && t.wantsFinal(e.class) {
			err = errors.Join(err, t.extend(ctx, e))
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("board %s: %w", e.board, err))
		}
		if done {
			continue
		}
		left[e.board] = t.boards[e.board]
		if oldest.IsZero() || e.over.Before(oldest) {
			oldest = e.over
		}
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

// move takes a board one step further; done if nothing is left to do.
func (t *term) move(ctx context.Context, e ended) (done bool, err error) {
	p, want := t.boards[e.board], wire.LifeClosing
	if e.over.Before(t.passed) && t.now().After(e.over.Add(t.opts.PostTimeout)) {
		want = wire.LifeClosed
	}
	var unready error
	if want == wire.LifeClosed && p.life < want && t.wantsFinal(e.class) {
		if unready = t.opts.Finalizer.Ready(ctx, e.board); unready != nil {
			want = wire.LifeClosing
		}
	}
	if p.life < want {
		if p.life, done, err = t.setLife(ctx, e.board, want); done || err != nil {
			return done, err
		}
		t.boards[e.board] = p
	}
	if p.life < wire.LifeClosed {
		return false, unready
	}
	if p.life == wire.LifeClosed && t.wantsFinal(e.class) {
		return t.final(ctx, e.board, p)
	}
	return true, t.forget(ctx, e.board)
}

// setLife sets a board's life, unless it is further already, and returns what it is. It is
// done with a board that is not there, or whose end is another than the index tells.
func (t *term) setLife(ctx context.Context, b rankcache.BoardID, want wire.Life) (life wire.Life, done bool, err error) {
	now := t.now().UnixMilli()
	answer, err := lifeScript.Run(ctx, t.opts.Redis, []string{t.opts.Names.MetaKey(b)}, int(want), now, wire.MetaLen).Int64Slice()
	switch {
	case err != nil:
		return 0, false, err
	case len(answer) != 2:
		return 0, false, fmt.Errorf("%d numbers from life.lua, want 2", len(answer))
	case answer[0] == -2:
		return 0, false, wire.ErrMeta
	case answer[0] == -1 && want == wire.LifeClosing: // a command that came in time may still make it
		return want, false, nil
	case answer[0] == -1 || answer[1] == 0: // it has expired, or was never made; or it has no end
		return 0, true, t.forget(ctx, b)
	case answer[1] > now:
		return 0, true, t.opts.Redis.ZAddXX(ctx, t.opts.Names.Ends, redis.Z{Score: float64(answer[1]), Member: string(b)}).Err()
	}
	if wire.Life(answer[0]) == want && want == wire.LifeClosed {
		t.metrics.closed.Inc()
		t.log.Debug("board closed", "board", b)
	}
	return wire.Life(answer[0]), false, nil
}

// final makes the final of a closed board.
func (t *term) final(ctx context.Context, b rankcache.BoardID, p progress) (done bool, err error) {
	now := t.now()
	if now.Before(p.next) || now.After(t.finalsUntil) {
		return false, nil
	}
	p.pause = min(max(2*p.pause, finalEvery), maxFinalPause)
	p.next = now.Add(p.pause)
	t.boards[b] = p
	if err := t.finish(ctx, b); err != nil {
		return false, fmt.Errorf("its final: %w", err)
	}
	if _, done, err := t.setLife(ctx, b, wire.LifeFinal); done || err != nil {
		return done, err
	}
	return true, t.forget(ctx, b)
}

// forget takes a board out of the index.
func (t *term) forget(ctx context.Context, b rankcache.BoardID) error {
	return t.opts.Redis.ZRem(ctx, t.opts.Names.Ends, string(b)).Err()
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
