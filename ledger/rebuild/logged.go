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
	strange bool                   // changes of a run, or of another history of one, that was not there at first
	lives   int
	branches
	lacks string // what the board has that the topic does not, or is not written from it
}

// fold reads a board's topic twice: to find out its runs, and to fold its changes. The caller closes the answer.
func (s *Updates) fold(ctx context.Context, b rankcache.BoardID, since int64, both bool) (*logged, error) {
	r, err := s.open(ctx, s.File.Log(s.Names, b).Topic)
	if err != nil {
		return nil, err
	}
	l := &logged{reader: r, board: b, since: since, runs: make(outline), now: newLife(), orders: make(map[string]wire.Update), branches: newBranches(both)}
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
	if l.lives = l.runs.arrange(); l.lives == 0 {
		return fmt.Errorf("%w: topic %s has no change of it with a seq", errLogShort, l.topic)
	}
	if l.lives > 1 {
		l.before = newLife()
	}
	if err := l.begin(ctx); err != nil {
		return err
	}
	return l.more(ctx)
}

// more folds the changes that follow.
func (l *logged) more(ctx context.Context) error {
	return l.toEnd(ctx, func(u *wire.Update) {
		if u.Board != l.board || u.Seq == 0 {
			return
		}
		s := l.runs.find(u)
		if s == nil {
			l.strange = l.runs.note(u) || l.strange
			s = l.runs.find(u)
		}
		switch {
		case strings.HasPrefix(u.OrderID, "hide/"):
			l.lacks = "hides members, or has hidden some: the points that a member got while it was hidden are not in the topic"
		case u.Data != "":
			l.lacks = "has members with data, which rebuild does not write"
		case s.life == l.lives-1:
			l.now.apply(u, s)
			l.branches.note(u, s, len(l.runs[u.Run]) > 1)
			l.keepOrder(u, s)
		case s.life == l.lives-2:
			l.before.apply(u, s)
			l.keepOrder(u, s)
		}
	})
}

// keepOrder keeps a change whose order id can still be known.
func (l *logged) keepOrder(u *wire.Update, s *stretch) {
	if u.At < l.since || u.OrderID == "" || u.Op == wire.OpTrim || u.Seq >= s.limit && l.sum == nil {
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
func (w *work) prove() error {
	l := w.log
	if l.lacks != "" {
		return fmt.Errorf("board %s %s", l.board, l.lacks)
	}
	err := l.now.prove()
	if err == nil && w.opts.AddEarlier && l.before != nil {
		if err = l.before.prove(); err != nil {
			err = fmt.Errorf("its life before %v: %w", l.now.state(), err)
		}
	}
	if err != nil && l.cut {
		err = fmt.Errorf("%w; the beginning of topic %s is gone: let it keep its records for as long as its boards live", err, l.topic)
	}
	if err == nil && w.opts.AddBranches && len(l.left) > 0 {
		err = l.addUp(w.rules.Addable)
	}
	if err != nil {
		err = fmt.Errorf("%w; Redis has %v. %s", err, w.redis, l.forked())
	}
	return err
}

// moved returns why the topic does not prove the board; that it is written to, if more comes: two changes may be published in the other
// order, and the first is not there yet.
func (w *work) moved(ctx context.Context, why error) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(100 * time.Millisecond):
	}
	was := w.log.now.changes
	if err := w.log.more(ctx); err != nil {
		return err
	}
	if w.log.now.changes > was || w.log.strange {
		return fmt.Errorf("%w: %w", errMoved, why)
	}
	return why
}

// whole returns the life that is to be written, which has the earlier one, or other histories, added if that is wanted.
func (w *work) whole() *life {
	l := w.log
	if l.sum != nil && len(l.left) > 0 {
		return l.sum
	}
	if w.opts.AddEarlier && l.before != nil {
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
	if w.log, err = w.opts.Updates.fold(ctx, w.board, w.since(), w.opts.AddBranches); err != nil {
		return err
	}
	if err := w.prove(); err != nil {
		return w.moved(ctx, err)
	}
	state := w.log.now.state()
	w.meta.Run = max(w.meta.Run, state.Run)
	if w.log.before != nil && !w.opts.AddEarlier {
		w.done.Life, w.done.Earlier = w.log.before.earlier(), len(w.log.before.members)
	}
	if w.redis.Seq > state.Seq { // it is waited for
		return nil
	}
	return w.stands(ctx, w.redis)
}

// mayAdd returns nil unless an earlier life is to be added where that can't be right.
func (w *work) mayAdd() error {
	if w.opts.AddEarlier && !w.rules.Addable {
		return fmt.Errorf("%w: an earlier life can't be added to boards of classes with best, ties, trim, rolling or durable", errLogShort)
	}
	return nil
}

// stands returns nil if the topic has Redis's state in a history that is written: else Redis's would be undone.
func (w *work) stands(ctx context.Context, redis rankcache.State) (err error) {
	if redis.Run != 0 && !redis.HasSum { // it is being added up
		if redis.Sum, err = w.sumOfRedis(ctx); err != nil {
			return err
		}
	}
	l, forked := w.log, w.log.forked()
	switch {
	case redis.Run == 0 || redis.Seq == 0 && redis.Sum == 0:
		return nil
	case forked != "" && !w.opts.AddBranches:
		return fmt.Errorf("%w: %s: --both adds up the increments of all; to have the latest as it was, delete the board first", errForked, forked)
	case !l.holds(redis):
		return fmt.Errorf("%w: Redis has a history of the board (%v) that a rebuild would undo, as topic %s gives another one (%v): delete the board first if that is wanted. %s",
			errLogShort, redis, l.topic, l.now.state(), forked)
	}
	return nil
}

func (w *work) sumOfRedis(ctx context.Context) (sum uint64, err error) {
	_, _, err = w.opts.Origin.Scan(ctx, w.board, func(batch []rankcache.Entry) error {
		for _, e := range batch {
			sum = (sum + wire.Hash(e.Member, e.Score)) & wire.SumMask
		}
		return nil
	})
	return sum, err
}

// restOfLog reads what the topic has got since, as soon as it has all that Redis has applied, and writes the board.
func (w *work) restOfLog(ctx context.Context, seq uint64) (state rankcache.State, err error) {
	w.log.lives = w.log.runs.arrange()
	for end := time.Now().Add(w.opts.Wait); ; {
		if err := w.log.more(ctx); err != nil {
			return state, err
		}
		if w.log.strange {
			return state, errMoved
		}
		if state = w.log.now.state(); state.Seq >= seq || w.log.holds(w.done.Before) {
			break
		}
		if time.Now().After(end) {
			return state, fmt.Errorf("%w: Redis has applied %d, topic %s has %d: check that writers publish the board's updates. %s", ErrBehind, seq, w.log.topic, state.Seq, w.log.forked())
		}
	}
	if err := w.prove(); err != nil {
		return state, w.moved(ctx, err)
	}
	if err := w.stands(ctx, w.done.Before); err != nil {
		return state, err
	}
	w.done.Forked = w.log.forked()
	if err := w.writeMembers(ctx, w.whole()); err != nil {
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
	l, err := w.opts.Updates.fold(ctx, w.board, w.since(), w.opts.AddBranches)
	if err != nil {
		return err
	}
	defer l.close()
	w.log, w.redis = l, c.Redis
	if c.Refused = w.prove(); c.Refused == nil && w.redis.Seq <= l.now.state().Seq {
		c.Refused = w.stands(ctx, w.redis)
	}
	if l.before != nil && !w.opts.AddEarlier {
		c.Before, c.Earlier = l.before.earlier(), len(l.before.members)
	}
	c.Ledger, c.Forked = l.now.state(), l.forked()
	return differ(w.whole().Members)
}
