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
	Form       rankcache.ScoreForm
	Trend      *Trend // nil: not asked for
}

// Trend is the ranks of members in the period before, or why they can't be read.
type Trend struct {
	Ranks map[string]int // 0: the member was not on that board
	Error Code
}

// With returns r with the trend, r itself without one.
func (r *Ranks) With(t *Trend) *Ranks {
	if t == nil {
		return r
	}
	return r.with(t)
}

// with is not inlined, for the sake of the many answers without a trend.
//
//go:noinline
func (r *Ranks) with(t *Trend) *Ranks {
	with := Ranks{Trend: t}
	if r != nil {
		with = *r
		with.Trend = t
	}
	return &with
}

var integers = &Ranks{Form: rankcache.ScoreInteger}

// Plain returns how rows are shown that are ranked by their places.
func Plain(f rankcache.ScoreForm) *Ranks {
	if f == rankcache.ScoreInteger {
		return integers
	}
	return nil
}

// RanksOf returns how the rows of a, which answers q, are shown.
func RanksOf(q *rankcache.PageQuery, a *sidecar.PageAnswer) *Ranks {
	if !q.Ranked() {
		return Plain(a.Form)
	}
	return &Ranks{q.Mode, q.Percentile, a.Members, a.Page.Ahead(a.Ahead, a.Form), a.Form, nil}
}

// OwnRanks is [RanksOf] for the neighbours of the member, without them for the member.
func OwnRanks(q *rankcache.PageQuery, a *sidecar.PageAnswer) *Ranks {
	if !q.Ranked() {
		return Plain(a.Form)
	}
	own := &a.Own
	ahead := []rankcache.Ahead{own.Ahead}
	if p := neighboursOf(own); len(p.Entries) > 0 {
		ahead = p.Ahead(own.Ahead, a.Form)
	}
	return &Ranks{q.Mode, q.Percentile, own.Members, ahead, a.Form, nil}
}

// StandingRanks returns how standings are shown.
func StandingRanks(mode rankcache.RankMode, percentile bool, s *sidecar.Standings) *Ranks {
	if s.Ahead == nil {
		return Plain(s.Form)
	}
	return &Ranks{mode, percentile, s.Members, s.Ahead, s.Form, nil}
}

// appendPlace appends the fields of row i; place 0 is a member that is not on the board.
func (r *Ranks) appendPlace(dst []byte, i, place int, member string, score float64) []byte {
	if r == nil || place == 0 {
		return appendPlace(dst, place, member, score)
	}
	if r.Ahead != nil {
		place = r.Ahead[i].Rank(r.Mode, place-1)
	}
	dst = appendPlace(dst, place, member, r.shown(score))
	if r.Percentile {
		dst = r.appendPercentile(dst, i)
	}
	return r.appendPrevious(dst, member)
}

// appendStanding is appendPlace for a member that may be trimmed.
func (r *Ranks) appendStanding(dst []byte, i int, s *rankcache.Standing) []byte {
	if !s.Trimmed {
		return r.appendPlace(dst, i, s.Rank, s.Member, s.Score)
	}
	dst = wire.AppendString(append(dst, `"rank":null,"member":`...), s.Member)
	return r.appendPrevious(wire.AppendScore(append(dst, `,"score":`...), r.shown(s.Score)), s.Member)
}

// appendPrevious appends the member's rank in the period before, if it was asked for.
func (r *Ranks) appendPrevious(dst []byte, member string) []byte {
	if r == nil || r.Trend == nil || r.Trend.Error != "" {
		return dst
	}
	dst = append(dst, `,"previous_rank":`...)
	if rank := r.Trend.Ranks[member]; rank > 0 {
		return strconv.AppendInt(dst, int64(rank), 10)
	}
	return append(dst, "null"...)
}

// appendTrendError appends why the rows lack the ranks of the period before.
func (r *Ranks) appendTrendError(dst []byte) []byte {
	if r == nil || r.Trend == nil || r.Trend.Error == "" {
		return dst
	}
	return r.Trend.appendError(dst)
}

// appendError is not inlined, as with is not.
//
//go:noinline
func (t *Trend) appendError(dst []byte) []byte {
	return append(append(append(dst, `,"trend_error":"`...), t.Error...), '"')
}

func (r *Ranks) appendPercentile(dst []byte, i int) []byte {
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
	if r == nil {
		return score
	}
	return r.Form.Shown(score)
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
