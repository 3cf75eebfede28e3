package faults

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// handFaults are changes made by hand in Redis, past the writer. They are made to
// boards at rest, and writes go on once a reader has seen them.
func handFaults() []fault {
	return []fault{{
		name: "members are removed by hand (ZREM)", losesWrites: true,
		prepare: func(w *env) { w.enlarge(largeBoard) },
		start:   func(w *env) { w.startLarge() },
		inject: func(w *env) {
			w.byHand(func(c redis.UniversalClient, b Board) map[string]Place {
				gone := map[string]Place{memberName(1): {}, memberName(7): {}}
				for m := range gone {
					w.must(c.ZRem(w.Context(), string(b.ID), m).Err())
				}
				return gone
			})
		},
	}, {
		name: "a board is deleted by hand (DEL)", losesWrites: true, note: "its sorted set alone",
		inject: func(w *env) {
			w.byHand(func(c redis.UniversalClient, b Board) map[string]Place {
				gone := map[string]Place{}
				for _, m := range w.oracle.Members(b.ID) {
					gone[m] = Place{}
				}
				w.must(c.Del(w.Context(), string(b.ID)).Err())
				return gone
			})
		},
	}, {
		name: "a score is changed by hand (ZADD)", losesWrites: true,
		inject: func(w *env) {
			w.byHand(func(c redis.UniversalClient, b Board) map[string]Place {
				member := w.oracle.Members(b.ID)[0]
				w.must(c.ZAdd(w.Context(), string(b.ID), redis.Z{Member: member, Score: 77_777}).Err())
				return map[string]Place{member: {score: 77_777, on: true}}
			})
		},
	}}
}

// byHand changes every local board and notes how long it takes until none is answered as
// it was.
func (w *env) byHand(change func(c redis.UniversalClient, b Board) map[string]Place) {
	w.Helper()
	w.writes.Pause()
	defer w.writes.Resume()
	for _, b := range w.boards { // so that nothing else is on its way
		w.wantSource(b)
	}
	c := w.client()
	start := time.Now()
	for _, b := range w.boards {
		if b.Tier == "local" {
			w.oracle.Changed(b.ID, change(c, b))
		}
	}
	var seen time.Duration
	for _, b := range w.boards {
		if b.Tier == "local" {
			w.waitCurrent(b)
			seen = time.Since(start)
		}
	}
	w.note("seen after %.1f s", seen.Seconds())
}

// waitCurrent waits until a board is answered as Redis has it, from anywhere.
func (w *env) waitCurrent(b Board) {
	w.Helper()
	w.eventually(func() error {
		a, r := w.ask(Question{Board: b.ID, Tier: b.Tier, Kind: KindTop, Limit: 500})
		if why := w.oracle.Current(a, r); r.Err != nil || why != "" {
			return fmt.Errorf("%s is answered by %s at seq %d: %s (%v)", b.ID, r.Source, r.Seq, why, r.Err)
		}
		return nil
	})
}

// Members returns the members of a board.
func (o *Oracle) Members(b rankcache.BoardID) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.of(b).now.all()
}

// wantSum waits until the checksum that Redis keeps of a board is that of its members.
func (w *env) wantSum(b Board, members []Row) {
	w.Helper()
	var sum uint64
	for _, m := range members {
		sum += wire.Hash(rankcache.JoinData(m.Member, m.Data), m.Score)
	}
	sum &= wire.SumMask
	c := w.client()
	w.eventually(func() error {
		value, err := c.Get(w.Context(), wire.DefaultNames().MetaKey(b.ID)).Result()
		if err != nil {
			return fmt.Errorf("%s has no meta: %w", b.ID, err)
		}
		meta, err := wire.ParseMeta(value)
		if err == nil && (!meta.HasSum || meta.Sum != sum || meta.Members != uint64(len(members))) {
			err = fmt.Errorf("%s has %d members and sum %012x, its meta is %+v", b.ID, len(members), sum, meta)
		}
		return err
	})
}
