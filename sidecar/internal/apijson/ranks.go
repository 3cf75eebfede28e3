package apijson

import (
	"strconv"

	"rankcache"
	"rankcache/sidecar"
)

// Ranks is how a run of rows is ranked other than by their places: a nil one.
type Ranks struct {
	Mode       rankcache.RankMode
	Percentile bool
	Members    int               // of the board
	Ahead      []rankcache.Ahead // of each row
}

// RanksOf returns the ranks of the rows of a, nil if q wants their places.
func RanksOf(q *rankcache.PageQuery, a *sidecar.PageAnswer) *Ranks {
	if !q.Ranked() {
		return nil
	}
	return &Ranks{q.Mode, q.Percentile, a.Members, a.Page.Ahead(a.Ahead)}
}

// OwnRanks is [RanksOf] for the neighbours of the member, without them for the member.
func OwnRanks(q *rankcache.PageQuery, own *sidecar.Own) *Ranks {
	if !q.Ranked() {
		return nil
	}
	ahead := []rankcache.Ahead{own.Ahead}
	if p := neighboursOf(own); len(p.Entries) > 0 {
		ahead = p.Ahead(own.Ahead)
	}
	return &Ranks{q.Mode, q.Percentile, own.Members, ahead}
}

// appendPlace appends the fields of row i, which is on the board at the 0-based index.
func (r *Ranks) appendPlace(dst []byte, i, index int, e *rankcache.Entry) []byte {
	dst = appendPlace(dst, r.Ahead[i].Rank(r.Mode, index), e.Member, e.Score)
	if !r.Percentile {
		return dst
	}
	hundredths := int64(r.Ahead[i].Percentile(r.Members))
	dst = strconv.AppendInt(append(dst, `,"percentile":`...), hundredths/100, 10)
	if hundredths%100 == 0 {
		return dst
	}
	return appendDigits(append(dst, '.'), int(hundredths%100), 2)
}
