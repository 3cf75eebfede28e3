// Package encode (no public API) is the JSON of answers and errors, which the data port and the admin port
// write alike. page.go appends answers by hand, which takes a sixth of the time of
// encoding/json; profiles.go joins profiles into them; problem.go has the error codes.
package encode

import (
	"strconv"
	"time"

	"rankcache"
	"rankcache/wire"
)

// AppendHead begins the object of an answer.
func AppendHead(dst []byte, q *rankcache.Query, a *rankcache.Answer) []byte {
	dst = append(dst, `{"board":"`...)
	dst = append(dst, q.Board...) // its alphabet needs no escapes
	dst = append(dst, `","source":"`...)
	dst = append(dst, a.Source.String()...)
	dst = append(dst, `","seq":`...)
	dst = appendSeq(dst, a.Seq)
	dst = append(dst, `,"total":`...)
	dst = strconv.AppendInt(dst, int64(a.Members), 10)
	dst = append(dst, `,"published_at":`...)
	dst = appendTime(dst, a.At)
	dst = append(append(append(dst, `,"order":"`...), a.Form.Named(q.Order).String()...), '"')
	if a.Incomplete {
		dst = append(dst, `,"incomplete":true`...)
	}
	if a.Shards != nil {
		dst = appendShards(dst, a.Shards)
	}
	return dst
}

func appendShards(dst []byte, seqs []uint64) []byte {
	dst = append(dst, `,"shards":`...)
	for i, seq := range seqs {
		dst = strconv.AppendUint(append(dst, "[,"[min(i, 1)]), seq, 10)
	}
	return append(dst, ']')
}

// AppendPage appends the rows of an answer with all that the page tells.
func AppendPage(dst []byte, q *rankcache.Query, a *rankcache.Answer, s *Show, j *Joined) []byte {
	dst = AppendHead(dst, q, a)
	dst = append(dst, `,"start":`...)
	dst = strconv.AppendInt(dst, int64(a.Start), 10)
	dst = append(dst, `,"limit":`...)
	dst = strconv.AppendInt(dst, int64(q.Limit), 10)
	if q.Range != nil {
		dst = appendBeyond(strconv.AppendInt(append(dst, `,"matches":`...), int64(a.Matches), 10), a)
	}
	dst = s.appendRows(append(dst, `,"entries":`...), a.Start, a.Entries, a.Ahead, a.Members, a.Data, j)
	return append(s.appendTrendError(appendMissing(dst, j)), '}')
}

// AppendScore appends which rank the score has that q asks for, or would have.
func AppendScore(dst []byte, q *rankcache.Query, a *rankcache.Answer) []byte {
	dst = wire.AppendScore(append(AppendHead(dst, q, a), `,"score":`...), q.Range.Least)
	dst = append(dst, `,"rank":`...)
	if rank := a.ScoreRank(); rank > 0 {
		dst = strconv.AppendInt(dst, int64(rank), 10)
	} else {
		dst = append(dst, "null"...)
	}
	return append(appendBeyond(strconv.AppendInt(append(dst, `,"members":`...), int64(a.Matches), 10), a), '}')
}

// appendBeyond tells that there may be members with such scores that have no rank.
func appendBeyond(dst []byte, a *rankcache.Answer) []byte {
	if !a.Beyond {
		return dst
	}
	return append(dst, `,"beyond":true`...)
}

// appendRows appends rows of a board of so many members as an array; ahead is that of the first.
func (s *Show) appendRows(dst []byte, start int, rows []rankcache.Entry, ahead rankcache.Ahead, members int, data *rankcache.Data, j *Joined) []byte {
	dst = append(dst, '[')
	for i := range rows {
		if i > 0 {
			dst = append(dst, ',')
			if s.Ranked {
				ahead = ahead.Next(start+i, rows[i].Score, rows[i-1].Score, s.Form)
			}
		}
		dst = s.appendPlace(append(dst, '{'), rankcache.Standing{Member: rows[i].Member, Score: rows[i].Score, Rank: start + i + 1}, ahead, members, data)
		dst = append(AppendProfile(dst, j, i), '}')
	}
	return append(dst, ']')
}

func AppendProfile(dst []byte, j *Joined, i int) []byte {
	if p, asked := j.at(i); asked {
		dst = append(dst, `,"profile":`...)
		if j.Offsets != nil {
			j.Offsets[i] = len(dst)
		}
		dst = append(dst, p...)
	}
	return dst
}

// appendMissing appends how many profiles may still come.
func appendMissing(dst []byte, j *Joined) []byte {
	if j.Profiles == nil {
		return dst
	}
	return strconv.AppendInt(append(dst, `,"profiles_missing":`...), int64(j.Missing), 10)
}

// AppendMember appends what follows the head of an answer about one member. Profile i is that of neighbour i.
func AppendMember(dst []byte, q *rankcache.Query, own *rankcache.Own, s *Show, j *Joined) []byte {
	dst = AppendProfile(s.appendOwn(append(dst, ','), own), j, rowOf(own))
	if q.Around > 0 {
		dst = s.appendNeighbours(dst, own, j)
	}
	return append(s.appendTrendError(appendMissing(dst, j)), '}')
}

// AppendMembers appends what follows the head of an answer about several members, in the requested order.
func AppendMembers(dst []byte, a *rankcache.Answer, s *Show, j *Joined) []byte {
	dst = append(dst, `,"members":[`...)
	for i := range a.Own {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendProfile(s.appendOwn(append(dst, '{'), &a.Own[i]), j, i), '}')
	}
	return append(s.appendTrendError(appendMissing(append(dst, ']'), j)), '}')
}

// AppendPlaces is AppendMembers for rows of a list by rank, with the caller if it was asked for: the
// profile of row i is that of place i, and behind them comes the caller's.
func AppendPlaces(dst []byte, a *rankcache.Answer, rows, me []rankcache.Place, s *Show, j *Joined) []byte {
	dst = append(dst, `,"members":[`...)
	for i := range rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendProfile(s.appendListed(dst, a, rows[i]), j, i), '}')
	}
	dst = append(dst, ']')
	if len(me) > 0 {
		if dst = append(dst, `,"me":`...); me[0].Place == 0 {
			dst = append(dst, "null"...)
		} else {
			dst = append(AppendProfile(s.appendListed(dst, a, me[0]), j, len(rows)), '}')
		}
	}
	return append(s.appendTrendError(appendMissing(dst, j)), '}')
}

// appendListed appends the fields of a member, and its place in a list.
func (s *Show) appendListed(dst []byte, a *rankcache.Answer, p rankcache.Place) []byte {
	if dst = append(dst, `{"place":`...); p.Place == 0 {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, int64(p.Place), 10)
	}
	return s.appendOwn(append(dst, ','), &a.Own[p.At])
}

// AppendMe appends the caller, with a seq of its own, behind a page that lost its closing brace.
func AppendMe(dst []byte, q *rankcache.Query, own *rankcache.Own, s *Show, j *Joined) []byte {
	dst = append(dst, `,"me":`...)
	if !own.Found() {
		return append(dst, `null}`...)
	}
	dst = s.appendOwn(append(dst, '{'), own)
	dst = appendSeq(append(dst, `,"seq":`...), own.Stamp.Seq)
	dst = AppendProfile(dst, j, rowOf(own))
	if q.Gap {
		dst = s.appendGap(append(dst, `,"gap":`...), own)
	}
	if q.Around > 0 {
		dst = appendMissing(s.appendNeighbours(dst, own, j), j)
	}
	return append(s.appendTrendError(dst), `}}`...)
}

func rowOf(own *rankcache.Own) int {
	if len(own.Neighbours) == 0 {
		return 0
	}
	return own.Rank - 1 - own.First
}

func (s *Show) appendOwn(dst []byte, own *rankcache.Own) []byte {
	ahead := own.Ahead
	for i := 1; s.Ranked && i <= rowOf(own); i++ {
		ahead = ahead.Next(own.First+i, own.Neighbours[i].Score, own.Neighbours[i-1].Score, s.Form)
	}
	dst = s.appendPlace(dst, own.Standing, ahead, own.Stamp.Members, own.Data)
	if s.Mode == rankcache.Approx && own.Rank > 0 {
		dst = appendWithin(dst, own)
	}
	return dst
}

// appendWithin appends how far from the true rank a member may be, and the seq of its ladder.
func appendWithin(dst []byte, own *rankcache.Own) []byte {
	dst = strconv.AppendInt(append(dst, `,"rank_within":`...), int64(own.Within), 10)
	if own.Ladder == nil {
		return dst
	}
	return strconv.AppendUint(append(dst, `,"ladder_seq":`...), own.Ladder.Seq, 10)
}

func (s *Show) appendNeighbours(dst []byte, own *rankcache.Own, j *Joined) []byte {
	return s.appendRows(append(dst, `,"neighbours":`...), own.First, own.Neighbours, own.Ahead, own.Stamp.Members, own.Data, j)
}

// AppendMeError appends why a page lacks the caller's standing.
func AppendMeError(dst []byte, code Code) []byte {
	dst = append(dst, `,"me":null,"me_error":"`...)
	return append(append(dst, code...), `"}`...)
}

// AppendProfiles appends the answer about profiles alone.
func AppendProfiles(dst []byte, members []string, j *Joined) []byte {
	dst = append(dst, `{"profiles":[`...)
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendString(append(dst, `{"member":`...), m)
		dst = append(AppendProfile(dst, j, i), '}')
	}
	dst = append(dst, `],"profiles_missing":`...)
	return append(strconv.AppendInt(dst, int64(j.Missing), 10), '}')
}

func appendSeq(dst []byte, seq uint64) []byte {
	if seq == 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendUint(dst, seq, 10)
}

// appendTime appends t in RFC 3339 with milliseconds, UTC; Time.AppendFormat takes a fifth of a whole standing.
func appendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	dst = appendDigits(append(dst, '"'), year, 4)
	dst = appendDigits(append(dst, '-'), int(month), 2)
	dst = appendDigits(append(dst, '-'), day, 2)
	dst = appendDigits(append(dst, 'T'), hour, 2)
	dst = appendDigits(append(dst, ':'), minute, 2)
	dst = appendDigits(append(dst, ':'), second, 2)
	dst = appendDigits(append(dst, '.'), t.Nanosecond()/1e6, 3)
	return append(dst, `Z"`...)
}

const TimeLen = len(`"2006-01-02T15:04:05.000Z"`) // the length of what appendTime appends, quotes included

// appendDigits appends the last width digits of n, which is not negative.
func appendDigits(dst []byte, n, width int) []byte {
	dst = append(dst, "0000"[:width]...)
	for i := len(dst) - 1; width > 0; i, width = i-1, width-1 {
		dst[i] += byte(n % 10)
		n /= 10
	}
	return dst
}
