package encode

import (
	"math"
	"strconv"

	"rankcache"
	"rankcache/wire"
)

// Show is how rows are shown.
type Show struct {
	Ranked     bool // ranks are of the mode, by what is ahead of the rows
	Mode       rankcache.RankMode
	Percentile bool
	Form       rankcache.ScoreForm
	Trend      *Trend // nil: not asked for
}

// Trend is the ranks of members in the period before, or why they can't be read.
type Trend struct {
	Ranks map[string]int // 0: the member was not on that board
	Error Code
}

// ShowOf returns how the rows of an answer to q are shown.
func ShowOf(q *rankcache.Query, a *rankcache.Answer, t *Trend) Show {
	return Show{q.Ranked(), q.Mode, q.Percentile, a.Form, t}
}

// appendPlace appends the fields of a row; rank 0: not on the board. data has what the member has beside its score.
func (s *Show) appendPlace(dst []byte, row rankcache.Standing, ahead rankcache.Ahead, members int, data *rankcache.Data) []byte {
	if row.Rank == 0 {
		dst = wire.AppendString(append(dst, `"rank":null,"member":`...), row.Member)
		if !row.Trimmed {
			return append(dst, `,"score":null`...)
		}
		return s.appendPrevious(wire.AppendScore(append(dst, `,"score":`...), s.Form.Shown(row.Score)), row.Member)
	}
	if s.Ranked {
		row.Rank = ahead.Rank(s.Mode, row.Rank-1)
	}
	dst = strconv.AppendInt(append(dst, `"rank":`...), int64(row.Rank), 10)
	dst = wire.AppendString(append(dst, `,"member":`...), row.Member)
	dst = wire.AppendScore(append(dst, `,"score":`...), s.Form.Shown(row.Score))
	if text := data.Of(row.Member); text != "" {
		dst = wire.AppendString(append(dst, `,"data":`...), text)
	}
	if s.Percentile {
		dst = appendPercentile(dst, ahead.Percentile(members))
	}
	return s.appendPrevious(dst, row.Member)
}

// appendPrevious appends the member's rank in the period before, if it was asked for.
func (s *Show) appendPrevious(dst []byte, member string) []byte {
	if s.Trend == nil || s.Trend.Error != "" {
		return dst
	}
	dst = append(dst, `,"previous_rank":`...)
	if rank := s.Trend.Ranks[member]; rank > 0 {
		return strconv.AppendInt(dst, int64(rank), 10)
	}
	return append(dst, "null"...)
}

// appendTrendError appends why the rows lack the ranks of the period before.
func (s *Show) appendTrendError(dst []byte) []byte {
	if s.Trend == nil || s.Trend.Error == "" {
		return dst
	}
	return append(append(append(dst, `,"trend_error":"`...), s.Trend.Error...), '"')
}

func appendPercentile(dst []byte, hundredths int) []byte {
	dst = strconv.AppendInt(append(dst, `,"percentile":`...), int64(hundredths/100), 10)
	if hundredths%100 == 0 {
		return dst
	}
	return appendDigits(append(dst, '.'), hundredths%100, 2)
}

// appendGap appends what the member lacks to the nearest better score, at most the greatest double.
func (s *Show) appendGap(dst []byte, own *rankcache.Own) []byte {
	if !own.HasBetter {
		return append(dst, "null"...)
	}
	gap := s.Form.Shown(own.Better) - s.Form.Shown(own.Score)
	return wire.AppendScore(dst, min(max(gap, -math.MaxFloat64), math.MaxFloat64))
}
