package rebuild

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/internal/tick"
	"rankcache/ledger"
	"rankcache/wire"
)

const (
	wantedEvery   = 50 * time.Millisecond // how often boards are looked for whose commands wait
	wantedAtOnce  = 8                     // how many boards whose commands wait are rebuilt at once
	reachedWithin = 10 * time.Minute      // how long the ledger may take to read what there is, until it is asked anew
)

// mending makes one master whole, in one history: boards whose commands wait first, then all others.
type mending struct {
	*Mender
	damaged
	cancel context.CancelCauseFunc
	left   atomic.Int64 // boards that are to be looked at; -1: not known yet
	ended  atomic.Bool
}

// begin has a master made whole. It may be repeated.
func (m *Mender) begin(ctx context.Context, now ledger.Now, d damaged, all *sync.WaitGroup) *mending {
	w := &mending{Mender: m, damaged: d}
	ctx, w.cancel = context.WithCancelCause(ctx)
	all.Go(func() {
		defer w.ended.Store(true)
		defer w.cancel(nil)
		if err := w.run(ctx, now); err != nil && ctx.Err() == nil {
			m.failed(err)
		}
	})
	return w
}

// run returns once the master is whole, or why that can't be done now.
func (w *mending) run(ctx context.Context, now ledger.Now) error {
	begun, before := time.Now(), w.Status().Rebuilt
	w.note(func(s *MendStatus) { s.State = "behind" })
	reading, stop := context.WithTimeout(ctx, reachedWithin)
	err := now.Reached(reading)
	stop()
	if err != nil {
		return err
	}
	w.note(func(s *MendStatus) { s.State, s.Error = "rebuilding", "" })
	boards, err := w.known(ctx, w.damaged)
	if err != nil {
		return err
	}
	if err := w.boards(ctx, boards); err != nil {
		return err
	}
	w.log.Warn("Redis has all boards that the ledger has", "master", w.tag, "rebuilt", w.Status().Rebuilt-before, "took", time.Since(begun))
	return nil
}

// boards rebuilds all boards, and takes the mark away.
func (w *mending) boards(ctx context.Context, boards []ledger.Known) error {
	g, ctx := errgroup.WithContext(ctx)
	cleared := make(chan struct{})
	w.left.Store(int64(len(boards)))
	telling, stop := context.WithCancel(ctx)
	g.Go(func() error { w.tellLeft(telling); return nil })
	g.Go(func() error { return w.wantedBoards(ctx, cleared) })
	g.Go(func() error {
		defer stop()
		defer close(cleared)
		if err := w.otherBoards(ctx, boards); err != nil {
			return err
		}
		return w.clearOnceHealed(ctx)
	})
	return g.Wait()
}

// tellLeft tells Redis how many boards are left, which pages of sidecars show, until ctx ends.
func (w *mending) tellLeft(ctx context.Context) {
	for range tick.NowAndEvery(ctx, lookEvery) {
		_ = w.call(ctx, w.damaged, wire.AnswersLeft, strconv.FormatInt(w.left.Load(), 10)) // it is told again, and refused to who is late
	}
}

// clearOnceHealed takes the mark away as soon as writers have read what they read again.
func (w *mending) clearOnceHealed(ctx context.Context) error {
	for range tick.NowAndEvery(ctx, wantedEvery) {
		err := w.clear(ctx, w.damaged)
		if !errors.Is(err, errHealing) {
			return err
		}
		w.note(func(s *MendStatus) { s.State, s.Error = "reading", err.Error() })
	}
	return context.Cause(ctx)
}

// wantedBoards rebuilds boards whose commands wait, and answers for them, until the master is whole.
func (w *mending) wantedBoards(ctx context.Context, cleared <-chan struct{}) error {
	before := 0
	count := func(n int) {
		w.note(func(s *MendStatus) { s.Wanted += n - before })
		before = n
	}
	defer func() { count(0) }()
	for range tick.NowAndEvery(ctx, wantedEvery) {
		boards, err := w.wanted(ctx, w.damaged)
		if err != nil {
			return err
		}
		count(len(boards))
		var g errgroup.Group
		g.SetLimit(wantedAtOnce)
		for _, b := range boards {
			g.Go(func() error { return w.wantedBoard(ctx, b) })
		}
		if err := g.Wait(); err != nil {
			w.failed(err) // others go on; it is tried again
		}
		select {
		case <-cleared:
			return nil
		default:
		}
	}
	return context.Cause(ctx)
}

func (w *mending) wantedBoard(ctx context.Context, b rankcache.BoardID) error {
	if !w.take(b) {
		return nil // it is asked for again
	}
	defer w.free(b)
	k, err := w.opts.Store.KnownBoard(ctx, b)
	if err == nil {
		k.Final, err = w.hasFinal(ctx, &k)
	}
	if err != nil {
		return err
	}
	answer := wire.AnswerGo
	if k.Final {
		answer = wire.AnswerEnded
	} else if k.State.Run != 0 {
		err = w.board(ctx, w.fast, &k)
	}
	if err != nil {
		return err
	}
	return w.answer(ctx, w.damaged, b, answer)
}

// otherBoards rebuilds all other boards, those that were changed lately first.
func (w *mending) otherBoards(ctx context.Context, boards []ledger.Known) error {
	count := func(n int64) {
		w.left.Add(n)
		w.note(func(s *MendStatus) { s.Left += int(n) })
	}
	w.note(func(s *MendStatus) { s.Left += len(boards) })
	defer func() { count(-w.left.Load()) }()
	var failed error // of one; others go on
	for i := range boards {
		k := &boards[i]
		for !w.take(k.Board) {
			tick.Sleep(ctx, wantedEvery)
		}
		err := w.board(ctx, w.slow, k)
		w.free(k.Board)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		failed = cmp.Or(failed, err)
		count(-1)
	}
	return failed
}

// board rebuilds a board if Redis has lost changes of it.
func (w *mending) board(ctx context.Context, with *Rebuilder, k *ledger.Known) error {
	if !lives(w.opts.File(), k.Board, k.At) {
		return nil
	}
	lost, err := w.isLost(ctx, w.damaged, k)
	if err != nil || !lost {
		return err
	}
	result, err := with.again(ctx, k.Board, w.era)
	switch {
	case errors.Is(err, ErrExpired) || errors.Is(err, errWhole):
		return nil
	case err != nil:
		w.rebuilt.WithLabelValues("failed").Inc()
		return err
	}
	w.count(k.Board, result)
	return nil
}

func (w *mending) count(b rankcache.BoardID, done *Result) {
	result := "whole"
	if done.Partial != nil {
		result = "partial"
		w.log.Error("a board that Redis had lost was rebuilt, and may lack some of what it had", "board", b, "err", done.Partial)
	}
	w.rebuilt.WithLabelValues(result).Inc()
	w.note(func(s *MendStatus) {
		if s.Rebuilt++; done.Partial != nil {
			s.Partial++
		}
	})
}

const paceShare = 4 // how many times as long as a call its pause is: a fifth of Redis's core at most, for one caller

type pace struct{} // has a client of Redis wait after each call

func (pace) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (pace) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmd)
		tick.Sleep(ctx, paceShare*time.Since(begun))
		return err
	}
}

func (pace) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmds)
		tick.Sleep(ctx, paceShare*time.Since(begun))
		return err
	}
}
