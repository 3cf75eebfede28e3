package apijson

import (
	"math"
	"strconv"

	"rankcache"
	"rankcache/sidecar"
	"rankcache/wire"
)

// Ranks is how a run of rows is shown other than by their places and scores: a nil one.
type Ranks struct {
	Mode       rankcache.RankMode
	Percentile bool
	Members    int               // of the board
	Ahead      []rankcache.Ahead // of each row; nil: ranks are places
	Integers   bool              // scores are shown as integers
}

var integers = &Ranks{Integers: true}

// Plain returns how rows are shown that are ranked by their places.
func Plain(inIntegers bool) *Ranks {
	if inIntegers {
		return integers
	}
	return nil
}

// RanksOf returns how the rows of a, which answers q, are shown.
func RanksOf(q *rankcache.PageQuery, a *sidecar.PageAnswer) *Ranks {
	if !q.Ranked() {
		return Plain(a.Integers)
	}
	return &Ranks{q.Mode, q.Percentile, a.Members, a.Page.Ahead(a.Ahead, a.Integers), a.Integers}
}

// OwnRanks is [RanksOf] for the neighbours of the member, without them for the member.
func OwnRanks(q *rankcache.PageQuery, a *sidecar.PageAnswer) *Ranks {
	if !q.Ranked() {
		return Plain(a.Integers)
	}
	own := &a.Own
	ahead := []rankcache.Ahead{own.Ahead}
	if p := neighboursOf(own); len(p.Entries) > 0 {
		ahead = p.Ahead(own.Ahead, a.Integers)
	}
	return &Ranks{q.Mode, q.Percentile, own.Members, ahead, a.Integers}
}

// appendPlace appends the fields of row i; place 0 is a member that is not on the board.
func (r *Ranks) appendPlace(dst []byte, i, place int, member string, score float64) []byte {
	if r == nil || place == 0 {
		return appendPlace(dst, place, member, score)
	}
	if r.Ahead != nil {
		place = r.Ahead[i].Rank(r.Mode, place-1)
	}
	if dst = appendPlace(dst, place, member, r.shown(score)); !r.Percentile {
		return dst
	}
	hundredths := int64(r.Ahead[i].Percentile(r.Members))
	dst = strconv.AppendInt(append(dst, `,"percentile":`...), hundredths/100, 10)
	if hundredths%100 == 0 {
		return dst
	}
	return appendDigits(append(dst, '.'), int(hundredths%100), 2)
}

// appendPlace appends the fields of one row; rank 0 is a member that is not on the board.
func appendPlace(dst []byte, rank int, member string, score float64) []byte {
	if rank == 0 {
		dst = wire.AppendString(append(dst, `"rank":null,"member":`...), member)
		return append(dst, `,"score":null`...)
	}
	dst = strconv.AppendInt(append(dst, `"rank":`...), int64(rank), 10)
	dst = wire.AppendString(append(dst, `,"member":`...), member)
	return wire.AppendScore(append(dst, `,"score":`...), score)
}

func (r *Ranks) shown(score float64) float64 {
	if r == nil || !r.Integers {
		return score
	}
	return rankcache.ShownScore(score)
}

// appendGap appends what the member lacks to the nearest better score. JSON has no
// infinity, so a greater difference is the greatest double.
func (r *Ranks) appendGap(dst []byte, own *sidecar.Own) []byte {
	if !own.HasBetter {
		return append(dst, "null"...)
	}
	gap := r.shown(own.Better) - r.shown(own.Score)
	return wire.AppendScore(dst, min(max(gap, -math.MaxFloat64), math.MaxFloat64))
}
