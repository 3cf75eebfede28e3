package rpc

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"rankcache"
	v1 "rankcache/proto/rankcache/v1"
	"rankcache/sidecar/encode"
)

type rowMaker struct {
	show
	form  rankcache.ScoreForm
	trend *encode.Trend // nil: not asked for
}

// rowsOf returns what makes the rows of an answer, and of its members.
func (s *Server) rowsOf(ctx context.Context, f *found, a *rankcache.Answer) *rowMaker {
	m := &rowMaker{show: f.show, form: a.Form}
	if f.Before.Board == "" {
		return m
	}
	q := rankcache.Query{Board: f.Before.Board, Room: f.Room, Order: f.Order, Mode: f.mode, Uncounted: true, RanksOnly: true}
	for i := range a.Entries {
		q.Members = append(q.Members, a.Entries[i].Member)
	}
	for i := range a.Own {
		q.Members = append(q.Members, a.Own[i].Member)
	}
	m.trend = new(encode.Trend)
	ranks, _, err := s.reader.FormerRanks(ctx, &q, s.cfg.Now())
	if m.trend.Ranks = ranks; err != nil {
		m.trend.Error = encode.ProblemOf(err).Code
	}
	return m
}

// tell adds to the page why the rows lack the ranks of the period before.
func (m *rowMaker) tell(page *v1.Page) {
	if m.trend != nil {
		page.TrendError = string(m.trend.Error)
	}
}

// row returns a row without a profile, of a board of so many members; data has what the member has beside its score.
func (m *rowMaker) row(s *rankcache.Standing, ahead rankcache.Ahead, members int, data *rankcache.Data) *v1.Row {
	row := &v1.Row{Member: s.Member}
	if s.Rank > 0 {
		rank := s.Rank
		if m.mode != rankcache.Ordinal {
			rank = ahead.Rank(m.mode, rank-1)
		}
		row.Rank = proto.Int64(int64(rank))
		if m.percentile {
			row.Percentile = proto.Float64(float64(ahead.Percentile(members)) / 100)
		}
	}
	if !s.Found() {
		return row
	}
	row.Score, row.Data = proto.Float64(m.form.Shown(s.Score)), dataText(data.Of(s.Member))
	if m.trend != nil && m.trend.Ranks[s.Member] > 0 {
		row.PreviousRank = proto.Int64(int64(m.trend.Ranks[s.Member]))
	}
	return row
}

// own returns the row of a member without neighbours.
func (m *rowMaker) own(o *rankcache.Own) *v1.Row {
	row := m.row(&o.Standing, o.Ahead, o.Stamp.Members, o.Data)
	if m.mode != rankcache.Approx || o.Rank == 0 {
		return row
	}
	row.RankWithin = proto.Int64(int64(o.Within))
	if o.Ladder != nil {
		row.LadderSeq, row.LadderAgeMs = proto.Uint64(o.Ladder.Seq), proto.Int64(ageMs(o.Ladder.At))
	}
	return row
}

func (m *rowMaker) rows(entries []rankcache.Entry, start int, ahead rankcache.Ahead, members int, data *rankcache.Data, j *encode.Joined) []*v1.Row {
	rows := make([]*v1.Row, len(entries))
	for i := range entries {
		if i > 0 && (m.mode != rankcache.Ordinal || m.percentile) {
			ahead = ahead.Next(start+i, entries[i].Score, entries[i-1].Score, m.form)
		}
		rows[i] = m.row(&rankcache.Standing{Member: entries[i].Member, Score: entries[i].Score, Rank: start + i + 1}, ahead, members, data)
		if j.Profiles != nil {
			rows[i].Profile = profileText(j.Profiles[i])
		}
	}
	return rows
}

// dataText returns data as a string of protobuf, which is UTF-8, whatever somebody has written to Redis by hand.
func dataText(data string) string { return strings.ToValidUTF8(data, "\uFFFD") }
