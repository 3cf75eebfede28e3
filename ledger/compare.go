package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/internal/tick"
	"rankcache/wire"
)

const (
	// comparedAtOnce boards are compared with Redis each compareEvery.
	comparedAtOnce, compareEvery = 500, time.Minute
	// mostDiffer is how many boards that differ are compared again: each takes as long as it may.
	mostDiffer = 20
	// tries is how many states of Redis a board is compared with, and tryFor how long the ledger is waited for at each.
	tries, tryFor, tryEvery = 3, 5 * time.Second, 200 * time.Millisecond
)

// Compare reads Redis's state of a board, waits until the ledger has its seq, and compares the checksums there: what
// came since does not matter. It returns why the ledger has another board, "" if it has the same or Redis has none.
// One that differs is compared again once reached has returned, which waits until the ledger has all that its topic had
// at the call; its error says that the ledger is too late to tell. With a nil reached a board that is late differs.
func (s prover) Compare(ctx context.Context, board rankcache.BoardID, asked Redis, reached func(context.Context) error) (why string, err error) {
	for range tries { // a state may be that of a master which has lost it since
		var meta wire.Meta
		var found bool
		if meta, found, err = asked.Meta(ctx, board); err != nil {
			tick.Sleep(ctx, time.Second)
			continue
		}
		if !found || meta.Adopting || !meta.State.HasSum {
			return "", nil
		}
		why, err = s.await(ctx, board, meta.State)
		if err == nil && why != "" && reached != nil {
			why, err = s.compareOnce(ctx, board, meta.State, reached)
		}
		if err != nil || why == "" {
			return why, err
		}
	}
	return why, errors.Join(err, ctx.Err())
}

// compareOnce compares after the ledger has all that was published up to now: its topic is behind what Redis had.
func (s prover) compareOnce(ctx context.Context, board rankcache.BoardID, redis rankcache.State, reached func(context.Context) error) (why string, err error) {
	if err := reached(ctx); err != nil {
		return "", err
	}
	return s.compare(ctx, board, redis)
}

// await compares until the ledger has a state of Redis, or its time is over.
func (s prover) await(ctx context.Context, board rankcache.BoardID, redis rankcache.State) (why string, err error) {
	within, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	for range tick.NowAndEvery(within, tryEvery) {
		if why, err = s.compare(ctx, board, redis); err != nil || why == "" {
			return why, err
		}
	}
	return why, ctx.Err()
}

// compare compares what the ledger has at the seq of a state of Redis. There the run may be another one, as of a server
// that has applied the same commands. Where Redis's is later than all that the ledger has, the board was added up anew.
func (s prover) compare(ctx context.Context, board rankcache.BoardID, redis rankcache.State) (why string, err error) {
	p, at := Proof{Board: board}, rankcache.State{}
	err = s.in(ctx, sql.LevelRepeatableRead, func(t *transaction) error {
		base, err := proofState(t, &p)
		if err != nil || p.State.Seq == redis.Seq {
			at = p.State
			return err
		}
		q := t.d.query("SELECT run, seq, sum FROM rank_log WHERE board = ").arg(string(board)).add(" AND run >= ").arg(base).add(" AND seq = ").arg(int64(redis.Seq))
		return q.each(t, func(row *sql.Rows) error {
			var sum sql.NullInt64
			err := row.Scan(&at.Run, &at.Seq, &sum)
			at.Sum, at.HasSum = uint64(sum.Int64), sum.Valid // #nosec G115 -- stored from 48 bits
			return err
		})
	})
	switch {
	case err != nil && !errors.Is(err, ErrNoBoard):
		return "", err
	case p.State.Seq < redis.Seq:
		return fmt.Sprintf("Redis has change %d, the ledger the changes up to %d", redis.Seq, p.State.Seq), nil
	case at.Seq == 0 && redis.Seq >= p.First:
		return fmt.Sprintf("the ledger does not have change %d, which Redis has", redis.Seq), nil
	case at.HasSum && at.Sum != redis.Sum && (redis.Run <= p.State.Run || redis.Seq < p.State.Seq):
		return fmt.Sprintf("at change %d Redis has state %v, the ledger %v", redis.Seq, redis, at), nil
	}
	return "", nil
}

// compareInTurn compares boards with Redis, some each minute and those again that differ, while this ledger leads and
// has all that is in Kafka. Those with a final are left out.
func (l *Ledger) compareInTurn(ctx context.Context, now Now) {
	limit := rate.Sometimes{Interval: 10 * logEvery}
	turn := turn{l: l, differs: make(map[rankcache.BoardID]string)}
	last := time.Time{}
	for range tick.Every(ctx, logEvery) {
		if !now.Leads() {
			turn.differs, last = make(map[rankcache.BoardID]string), time.Time{}
		} else if time.Since(last) >= compareEvery {
			if err := turn.next(ctx, now); err != nil && ctx.Err() == nil {
				limit.Do(func() { l.log.Warn("boards are not compared with Redis: the next look is in a minute", "err", err) })
			}
			last = time.Now()
		}
		l.metrics.differs.Set(float64(len(turn.differs)))
		l.note(func(s *Status) { s.Differs = len(turn.differs) })
	}
}

// turn is a way through all boards.
type turn struct {
	l       *Ledger
	after   rankcache.BoardID
	differs map[rankcache.BoardID]string // why
}

// next compares the boards that differed, and the next ones.
func (r *turn) next(ctx context.Context, now Now) error {
	within, cancel := context.WithTimeout(ctx, compareEvery)
	defer cancel()
	if err := now.Reached(within); err != nil {
		return err
	}
	for board := range r.differs {
		if err := r.compare(ctx, board, now); err != nil {
			return err
		}
	}
	boards, err := r.l.opts.Store.Known(ctx, r.after, comparedAtOnce)
	if len(boards) < comparedAtOnce {
		r.after = ""
	}
	for _, k := range boards {
		if err != nil || len(r.differs) >= mostDiffer {
			break
		}
		if !k.Final && r.differs[k.Board] == "" {
			err = r.compare(ctx, k.Board, now)
		}
		if len(boards) == comparedAtOnce {
			r.after = k.Board
		}
	}
	return err
}

func (r *turn) compare(ctx context.Context, board rankcache.BoardID, now Now) error {
	ctx, cancel := context.WithTimeout(ctx, compareEvery)
	defer cancel()
	unknown := r.l.opts.Store.Locate(ctx, board, r.l.opts.Redis) // a user without +info still has the rest compared
	why, err := r.l.opts.Store.Compare(ctx, board, r.l.opts.Redis, now.Reached)
	switch {
	case err != nil: // what was known to differ still is
		return err
	case why == "":
		delete(r.differs, board)
		return nil
	case r.differs[board] == "":
		r.l.log.Error("Redis has another board than the ledger: pay nothing from it", "board", board, "why", why, "its_server", unknown)
	}
	r.differs[board] = why
	return nil
}
