package rebuild

import (
	"context"
	"fmt"
	"strings"
	"time"

	"rankcache"
	"rankcache/wire"
)

// logged is a board as the topic of its updates has it.
type logged struct {
	*reader
	board   rankcache.BoardID
	since   int64 // order ids of changes from this time on are kept, in Unix milliseconds
	runs    outline
	now     *life
	before  *life                  // the life before; nil: there is none
	orders  map[string]wire.Update // by order id: the latest, as repeats are published again
	strange bool                   // changes of a run that was not there at first
	lacks   string                 // what the board has that the topic does not, or is not written from it
}

// fold reads a board's topic twice: to find out its runs, and to fold its changes. The caller closes the answer.
func (s *Updates) fold(ctx context.Context, b rankcache.BoardID, since int64) (*logged, error) {
	r, err := s.open(ctx, s.File.Log(s.Names, b).Topic)
	if err != nil {
		return nil, err
	}
	l := &logged{reader: r, board: b, since: since, runs: make(outline), now: newLife(), orders: make(map[string]wire.Update)}
	if err := l.read(ctx); err != nil {
		r.close()
		return nil, err
	}
	return l, nil
}

func (l *logged) read(ctx context.Context) error {
	err := l.toEnd(ctx, func(u *wire.Update) {
		if u.Board == l.board && u.Seq > 0 {
			l.runs.note(u)
		}
	})
	if err != nil {
		return err
	}
	lives := l.runs.arrange()
	if lives == 0 {
		return fmt.Errorf("%w: topic %s has no change of it with a seq", errLogShort, l.topic)
	}
	if lives > 1 {
		l.before = newLife()
	}
	if err := l.begin(ctx); err != nil {
		return err
	}
	return l.more(ctx, lives)
}

// more folds the changes that follow.
func (l *logged) more(ctx context.Context, lives int) error {
	return l.toEnd(ctx, func(u *wire.Update) {
		if u.Board != l.board || u.Seq == 0 {
			return
		}
		switch s := l.runs[u.Run]; {
		case strings.HasPrefix(u.OrderID, "hide/"):
			l.lacks = "hides members, or has hidden some: the points that a member got while it was hidden are not in the topic"
		case u.Data != "":
			l.lacks = "has members with data, which rebuild does not write"
		case s == nil:
			l.strange = true
		case s.life == lives-1:
			l.now.apply(u, s)
			l.keepOrder(u, s)
		case s.life == lives-2:
			l.before.apply(u, s)
			l.keepOrder(u, s)
		}
	})
}

// keepOrder keeps a change whose order id can still be known.
func (l *logged) keepOrder(u *wire.Update, s *stretch) {
	if u.At < l.since || u.OrderID == "" || u.Op == wire.OpTrim || u.Seq >= s.limit {
		return
	}
	if was, known := l.orders[u.OrderID]; known && compareStates(u.Run, u.Seq, was.Run, was.Seq) <= 0 {
		return
	}
	kept := *u
	kept.Board, kept.Member, kept.OrderID, kept.By = l.board, strings.Clone(u.Member), strings.Clone(u.OrderID), strings.Clone(u.By)
	l.orders[kept.OrderID] = kept
}

// prove returns why the topic does not have all of the board, or nil.
func (l *logged) prove(addEarlier bool) error {
	if l.lacks != "" {
		return fmt.Errorf("board %s %s", l.board, l.lacks)
	}
	err := l.now.prove()
	if err == nil && addEarlier && l.before != nil {
		if err = l.before.prove(); err != nil {
			err = fmt.Errorf("its life before %v: %w", l.now.state(), err)
		}
	}
	if err != nil && l.cut {
		err = fmt.Errorf("%w; the beginning of topic %s is gone: let it keep its records for as long as its boards live", err, l.topic)
	}
	return err
}

// whole returns the life that is to be written, which has the earlier one added if that is wanted.
func (l *logged) whole(addEarlier bool) *life {
	if addEarlier && l.before != nil {
		l.now.add(l.before)
		l.before = nil
	}
	return l.now
}

// foldLog reads all that the board's topic has, while writers go on.
func (w *work) foldLog(ctx context.Context) (err error) {
	if err := w.mayAdd(); err != nil {
		return err
	}
	if w.log, err = w.opts.Updates.fold(ctx, w.board, w.since()); err != nil {
		return err
	}
	if err := w.log.prove(w.opts.AddEarlier); err != nil {
		return err
	}
	state := w.log.now.state()
	w.meta.Run = max(w.meta.Run, state.Run)
	if w.log.before != nil && !w.opts.AddEarlier {
		w.done.Life, w.done.Earlier = w.log.before.earlier(), len(w.log.before.members)
	}
	return w.ownLife(state)
}

// mayAdd returns nil unless an earlier life is to be added where that can't be right.
func (w *work) mayAdd() error {
	if w.opts.AddEarlier && !w.rules.Addable {
		return fmt.Errorf("%w: an earlier life can't be added to boards of classes with best, ties, trim, rolling or durable", errLogShort)
	}
	return nil
}

// ownLife returns an error if Redis has a life of the board that the topic does not have: it would be lost.
func (w *work) ownLife(of rankcache.State) error {
	if _, known := w.log.runs[w.redis.Run]; w.redis.Run != 0 && !known && w.redis.Seq < of.Seq {
		return fmt.Errorf("%w: Redis has a life of the board (%v) whose changes are not in topic %s, and which a rebuild would undo: delete the board first if that is wanted", errLogShort, w.redis, w.log.topic)
	}
	return nil
}

// restOfLog reads what the topic has got since, as soon as it has all that Redis has applied, and writes the board.
func (w *work) restOfLog(ctx context.Context, seq uint64) (state rankcache.State, err error) {
	lives := w.log.runs.arrange()
	for end := time.Now().Add(w.opts.Wait); ; {
		if err := w.log.more(ctx, lives); err != nil {
			return state, err
		}
		if w.log.strange {
			return state, errMoved
		}
		if state = w.log.now.state(); state.Seq >= seq {
			break
		}
		if time.Now().After(end) {
			return state, fmt.Errorf("%w: Redis has applied %d, topic %s has %d: check that writers publish the board's updates", ErrBehind, seq, w.log.topic, state.Seq)
		}
	}
	if err := w.log.prove(w.opts.AddEarlier); err != nil {
		return state, err
	}
	if err := w.writeMembers(ctx, w.log.whole(w.opts.AddEarlier)); err != nil {
		return state, err
	}
	return state, w.writeOrdersOf(ctx, func(add func(*wire.Update) error) error {
		for _, u := range w.log.orders {
			if err := add(&u); err != nil {
				return err
			}
		}
		return nil
	})
}

// compareLog is Compare for a board without a ledger.
func (w *work) compareLog(ctx context.Context, c *Comparison, differ func(func(func(rankcache.Entry) error) error) error) error {
	if err := w.mayAdd(); err != nil {
		return err
	}
	l, err := w.opts.Updates.fold(ctx, w.board, w.since())
	if err != nil {
		return err
	}
	defer l.close()
	w.log, w.redis = l, c.Redis
	c.Refused = l.prove(w.opts.AddEarlier)
	if c.Refused == nil {
		c.Refused = w.ownLife(l.now.state())
	}
	if l.before != nil && !w.opts.AddEarlier {
		c.Before, c.Earlier = l.before.earlier(), len(l.before.members)
	}
	c.Ledger = l.now.state()
	return differ(l.whole(w.opts.AddEarlier).Members)
}
