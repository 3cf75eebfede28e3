package controller

import (
	"cmp"
	"context"
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

const (
	// pageSize is how many boards are read from the index at once.
	pageSize = 1000
	// batchSize is how many boards are changed in one round trip, which takes Redis some milliseconds.
	batchSize = 500
	// Pauses between attempts to make a final.
	finalEvery, maxFinalPause = 10 * time.Second, 5 * time.Minute
	// finalTimeout bounds one final, finalsTime the start of finals in one look: other boards are closed meanwhile.
	finalTimeout, finalsTime = 10 * time.Minute, 5 * time.Second
	// sayAfter is how long the oldest board is closing when the log says what it waits for.
	sayAfter = time.Minute
)

// ended is a board of the index whose period and grace are over.
type ended struct {
	board rankcache.BoardID
	class *rooms.Class // nil if no class of the file makes the id
	over  time.Time    // end of period and grace
}

// closeBoards takes each board that is due one step further. It returns the first error: they mostly have one cause.
func (t *term) closeBoards(ctx context.Context) error {
	due, err := t.due(ctx)
	if err != nil {
		return err
	}
	var failed error
	t.waits = ""
	if len(due) > 0 {
		failed = t.pass(ctx, due)
	}
	t.finalsUntil = t.now().Add(finalsTime)
	left := make(map[rankcache.BoardID]progress)
	closing, oldest := 0, time.Time{}
	for batch := range slices.Chunk(due, batchSize) {
		moves := t.move(ctx, batch)
		for _, m := range moves {
			if t.closes(m) && t.wantsFinal(m.class) {
				m.err = errors.Join(m.err, t.extend(ctx, m.ended))
			}
			if m.err != nil {
				failed = cmp.Or(failed, fmt.Errorf("board %s: %w", m.board, m.err))
			}
			if m.done {
				continue
			}
			left[m.board] = m.progress
			if !t.closes(m) {
				continue
			}
			closing++
			if oldest.IsZero() || m.over.Before(oldest) {
				oldest = m.over
			}
		}
		failed = cmp.Or(failed, t.index(ctx, moves))
	}
	t.boards = left
	return cmp.Or(failed, t.observe(ctx, closing, len(left)-closing, oldest))
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

type move struct {
	ended
	progress
	done bool  // nothing is left to do
	end  int64 // when its period ends, if that is not what the index has, in Unix milliseconds
	err  error
}

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
	var again []*move
	for _, m := range moves {
		if m.done || m.err != nil || m.life < wire.LifeClosed {
			continue
		}
		if m.life == wire.LifeClosed && t.wantsFinal(m.class) {
			t.final(ctx, m)
		}
		switch {
		case t.closes(m):
		case !m.durable():
			m.done = true
		case !t.now().Before(m.since.Add(secondLook)):
			again = append(again, m)
		}
	}
	if len(again) > 0 {
		t.setLives(ctx, again, wire.LifeOpen)
	}
	return moves
}

// closes reports whether a board is still to be closed, or to have a final.
func (t *term) closes(m *move) bool {
	return !m.done && (m.life < wire.LifeClosed || m.life == wire.LifeClosed && t.wantsFinal(m.class))
}

func (t *term) want(ctx context.Context, m *move) wire.Life {
	passed := t.plain.passed
	if m.durable() {
		passed = t.durable.passed
	}
	if !m.over.Before(passed) || m.durable() && t.durable.eras == "" || !t.now().After(m.over.Add(t.opts.PostTimeout)) {
		return wire.LifeClosing
	}
	if m.life < wire.LifeClosed {
		var settled bool
		if settled, m.err = t.settled(ctx, m.ended); !settled {
			t.waitFor("the ledger does not have all changes of board %s", m.board)
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
	meta, found, err := metaOf(t.opts.Redis.Get(ctx, t.opts.Names.MetaKey(e.board)))
	if err != nil || !found {
		return err == nil, err
	}
	settled, err := t.opts.Ledger.Settled(ctx, e.board, meta.State)
	if err != nil {
		err = fmt.Errorf("its ledger: %w", err)
	}
	return settled, err
}

func (t *term) final(ctx context.Context, m *move) {
	now := t.now()
	if now.Before(m.next) || now.After(t.finalsUntil) {
		return
	}
	if m.class.Rolls() && !t.primed(ctx, m) {
		return
	}
	m.pause = min(max(2*m.pause, finalEvery), maxFinalPause)
	m.next = now.Add(m.pause)
	if err := t.finish(ctx, m.class, m.board); err != nil {
		m.err = fmt.Errorf("its final: %w", err)
		return
	}
	t.setLives(ctx, []*move{m}, wire.LifeFinal)
}

// primed reports whether a rolling board is what it says. One that is closed without its primes has no final.
func (t *term) primed(ctx context.Context, m *move) bool {
	meta, found, err := metaOf(t.opts.Redis.Get(ctx, t.opts.Names.MetaKey(m.board)))
	if m.err = err; err == nil && found && !meta.Primed {
		t.log.Warn("a rolling board is incomplete at its end, and has no final", "board", m.board)
		m.done = true
	}
	return err == nil && found && meta.Primed
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

// observe records how many boards are to be closed and since when, how many were, and what is waited for.
func (t *term) observe(ctx context.Context, closing, closed int, oldest time.Time) error {
	now, lag, waits := t.now(), 0.0, t.waits
	passed := t.plain.passed
	if t.durable.passed.After(passed) {
		passed = t.durable.passed
	}
	all, err := t.opts.Redis.ZCard(ctx, t.opts.Names.Ends).Result()
	if err != nil {
		return fmt.Errorf("read the index of ends: %w", err)
	}
	if !oldest.IsZero() {
		lag = now.Sub(oldest).Seconds()
	}
	running := max(int(all)-closing-closed, 0)
	for state, n := range map[string]int{"running": running, "closing": closing, "closed": closed} {
		t.metrics.boards.WithLabelValues(state).Set(float64(n))
	}
	if waits == "" {
		t.waitSince = now
	}
	if lag > sayAfter.Seconds() && now.Sub(t.waitSince) > sayAfter {
		t.waitLog.Do(func() {
			t.log.Warn("boards are not closed yet", "boards", closing, "lag", now.Sub(oldest), "waits_for", waits)
		})
	}
	t.metrics.lag.Set(lag)
	t.note(func(s *Status) {
		s.Running, s.Closing, s.Closed, s.WaitsFor = running, closing, closed, waits
		s.Lag, _ = strconv.ParseFloat(strconv.FormatFloat(lag, 'f', 3, 64), 64)
		if !passed.IsZero() {
			s.Passed = &passed
		}
	})
	return nil
}

// waitFor notes what boards wait for, if it is the first such thing in this look.
func (t *term) waitFor(format string, args ...any) {
	if t.waits == "" {
		t.waits = fmt.Sprintf(format, args...)
	}
}
