package origin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

const (
	LadderEvery = 10 * time.Second // how often the ladder of a board is made, at most, by all processes together
	LadderLives = 30 * time.Second // how old a ladder gets
)

// ladderMaker reads and makes ladders, each kept beside its board: its expiry tells its age by Redis's clock.
type ladderMaker struct{ *link }

// Ladder returns a board's ladder in Redis. One older than [LadderEvery], missing or damaged is made by the first who
// asks; others get the older one, or nil. A board without a run has none.
func (m ladderMaker) Ladder(ctx context.Context, b rankcache.BoardID) (l *rankcache.Ladder, err error) {
	err = m.call(ctx, "ladder", func(ctx context.Context) (err error) {
		if l, err = m.keptLadder(ctx, b); err != nil && !errors.Is(err, wire.ErrLadder) || l != nil && time.Since(l.At) < LadderEvery {
			return err
		}
		owner, at := rand.Text(), time.Now()
		taken, claimErr := m.client.SetNX(ctx, m.names.LadderLeaseKey(b), owner, LadderEvery).Result()
		if claimErr != nil || !taken {
			return claimErr
		}
		made, err := m.makeLadder(ctx, b)
		if err != nil || made == nil {
			return err
		}
		made.At, l = at, made
		return m.keep(ctx, b, owner, made)
	})
	return l, err
}

func (m ladderMaker) keptLadder(ctx context.Context, b rankcache.BoardID) (*rankcache.Ladder, error) {
	var left *redis.DurationCmd
	var value *redis.StringCmd
	key, at := m.names.LadderKey(b), time.Now()
	cmds, err := atOnce(ctx, m.client, func(p redis.Pipeliner) error {
		left, value = p.PTTL(ctx, key), p.GetRange(ctx, key, 0, wire.MaxLadderLen)
		return nil
	})
	if err = firstError(cmds, err); err != nil || value.Val() == "" {
		return nil, err
	}
	l, err := wire.ParseLadder(value.Val())
	if err != nil || left.Val() <= 0 || left.Val() > LadderLives {
		return nil, err // one without an expiry may be of any age
	}
	l.At = at.Add(left.Val() - LadderLives)
	return l, nil
}

// keepScript stores a ladder for as long as the lease still lasts and ARGV[3] ms more, if that is still the owner's.
var keepScript = redis.NewScript(`
local left = redis.call('PTTL', KEYS[2])
if left > 0 and redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2], 'PX', left + ARGV[3]) end
return left`)

func (m ladderMaker) keep(ctx context.Context, b rankcache.BoardID, owner string, l *rankcache.Ladder) error {
	keys := []string{m.names.LadderKey(b), m.names.LadderLeaseKey(b)}
	return keepScript.Run(ctx, m.client, keys, owner, wire.AppendLadder(nil, l), (LadderLives - LadderEvery).Milliseconds()).Err()
}

// makeLadder reads the rungs in one pipeline, nil without a run or with few members. Changes has what came between.
func (m ladderMaker) makeLadder(ctx context.Context, b rankcache.BoardID) (*rankcache.Ladder, error) {
	var head *redis.ZSliceCmd
	key := m.names.BoardKey(b)
	before, err := m.transaction(ctx, b, func(p redis.Pipeliner) {
		head = zRange(ctx, p, key, 0, rankcache.LadderFirst, rankcache.Descending)
	})
	if err != nil || before.Run == 0 || before.Seq == 0 || before.Members < rankcache.MinLadder {
		return nil, err
	}
	first, err := toEntries(key, head.Val())
	if err != nil {
		return nil, err
	}
	l := &rankcache.Ladder{Run: before.Run, Seq: before.Seq, Members: before.Members}
	for i, e := range first {
		addRung(l, e, i+1)
	}
	if err = m.readRungs(ctx, key, l); err != nil {
		return nil, err
	}
	after, err := m.transaction(ctx, b, func(redis.Pipeliner) {})
	switch {
	case err != nil:
		return nil, err
	case after.Run != before.Run || after.Seq < before.Seq:
		return nil, fmt.Errorf("ladder of board %s: %w: its state was %v and is %v", b, ErrOtherRun, before.State, after.State)
	}
	l.Changes = int(after.Seq - before.Seq) // #nosec G115 -- within a second
	return l, nil
}

func (m ladderMaker) readRungs(ctx context.Context, key string, l *rankcache.Ladder) error {
	var ranks []int
	for rank := rankcache.LadderFirst; rank < l.Members && rankcache.LadderFirst+len(ranks) < rankcache.MaxRungs; {
		rank = min(rankcache.NextRung(rank), l.Members)
		ranks = append(ranks, rank)
	}
	rows := make([]*redis.ZSliceCmd, len(ranks))
	cmds, err := m.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, rank := range ranks {
			rows[i] = p.ZRevRangeWithScores(ctx, key, int64(rank-1), int64(rank-1))
		}
		return nil
	})
	if err = firstError(cmds, err); err != nil {
		return err
	}
	for i, row := range rows {
		entries, err := toEntries(key, row.Val())
		if err != nil {
			return err
		}
		for _, e := range entries {
			addRung(l, e, ranks[i])
		}
	}
	return nil
}

// addRung adds a row, unless it has changed its place since the one before was read, or has the id of no member.
func addRung(l *rankcache.Ladder, e rankcache.Entry, rank int) {
	if n := len(l.Rungs); rankcache.CheckMember(e.Member) == nil && (n == 0 || l.Rungs[n-1].Before(e)) {
		l.Rungs = append(l.Rungs, rankcache.Rung{Entry: e, Rank: rank})
	}
}

// readApproximate reads members' scores, whose ranks are the query's ladder's, unless another run has begun.
func (r reader) readApproximate(ctx context.Context, q *rankcache.Query, a *rankcache.Answer) {
	other := r.dataKey(q.Board) != "" // which is read with exact ranks
	err := r.call(ctx, "approximate", func(ctx context.Context) error {
		if other {
			return nil
		}
		stamp, scores, err := r.readScores(ctx, q)
		if other = stamp.Run != q.Ladder.Run; err != nil || other {
			return err
		}
		a.Begin(q, rankcache.SourceRedis, stamp, stamp.At)
		for i := range a.Own {
			own, ok := &a.Own[i], false
			if own.Score, ok = scores[own.Member]; ok {
				own.Approximate(q)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		a.Fail(err)
	case other:
		exact := *q
		exact.Ladder = nil
		*a = rankcache.One(ctx, r, exact)
	}
}

// readScores returns the scores of q's members on the board, by ZMSCORE (half of ZSCORE's cost) if Redis has it.
func (r reader) readScores(ctx context.Context, q *rankcache.Query) (stamp rankcache.Stamp, scores map[string]float64, err error) {
	key, list := r.names.BoardKey(q.Board), []any(nil)
	if r.mscore.Load() {
		var reply *redis.Cmd
		args := []any{"ZMSCORE", key}
		for _, m := range q.Members {
			args = append(args, m)
		}
		if stamp, err = r.transaction(ctx, q.Board, func(p redis.Pipeliner) { reply = p.Do(ctx, args...) }); err == nil {
			list, err = reply.Slice()
		} else if redis.HasErrorPrefix(err, "ERR unknown command") || redis.HasErrorPrefix(err, "NOPERM") {
			r.mscore.Store(false)
		}
	}
	if !r.mscore.Load() {
		single := make([]*redis.StringCmd, len(q.Members))
		stamp, err = r.transaction(ctx, q.Board, func(p redis.Pipeliner) {
			for i, m := range q.Members {
				single[i] = redis.NewStringCmd(ctx, "ZSCORE", key, m)
				_ = p.Process(ctx, single[i])
			}
		})
		for _, s := range single {
			if s.Err() != nil { // not on the board: firstError returns every other error
				list = append(list, nil)
			} else {
				list = append(list, s.Val())
			}
		}
	}
	if err == nil {
		scores, err = toScores(key, q.Members, list)
	}
	return stamp, scores, err
}
