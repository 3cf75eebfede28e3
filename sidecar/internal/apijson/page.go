// Package apijson is the JSON of answers and errors, which the data port and the admin port
// write alike. page.go appends answers by hand, which takes a sixth of the time of
// encoding/json; profiles.go joins profiles into them; problem.go has the error codes.
package apijson

import (
	"strconv"
	"time"

	"rankcache"
	"rankcache/sidecar"
	"rankcache/wire"
)

// AppendHead begins the object of an answer.
func AppendHead(dst []byte, q sidecar.Query, source sidecar.Source, s rankcache.Stamp) []byte {
	dst = append(dst, `{"board":"`...)
	dst = append(dst, q.Board...) // its alphabet needs no escapes
	dst = append(dst, `","source":"`...)
	dst = append(dst, source.String()...)
	dst = append(dst, `","seq":`...)
	dst = appendSeq(dst, s.Seq)
	dst = append(dst, `,"total":`...)
	dst = strconv.AppendInt(dst, int64(s.Members), 10)
	dst = append(dst, `,"published_at":`...)
	dst = appendTime(dst, s.At)
	dst = append(append(dst, `,"order":"`...), q.Order.String()...)
	return append(dst, '"')
}

// AppendPage appends a whole page of q.
func AppendPage(dst []byte, q sidecar.Query, limit int, a *sidecar.Answer, r *Ranks, j *Joined) []byte {
	dst = AppendHead(dst, q, a.Source, a.Stamp)
	dst = append(dst, `,"start":`...)
	dst = strconv.AppendInt(dst, int64(a.Start), 10)
	dst = append(dst, `,"limit":`...)
	dst = strconv.AppendInt(dst, int64(limit), 10)
	dst = appendRows(append(dst, `,"entries":`...), a.Page, r, j)
	return append(r.appendTrendError(appendMissing(dst, j)), '}')
}

// appendRows appends the rows of a page as an array.
func appendRows(dst []byte, p rankcache.Page, r *Ranks, j *Joined) []byte {
	dst = append(dst, '[')
	for i := range p.Entries {
		if i > 0 {
			dst = append(dst, ',')
		}
		e := &p.Entries[i]
		dst = append(dst, '{')
		dst = r.appendPlace(dst, i, p.Start+i+1, e.Member, e.Score)
		dst = AppendProfile(dst, j, i)
		dst = append(dst, '}')
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

// AppendStanding appends what follows the head of an answer about one member.
func AppendStanding(dst []byte, s *sidecar.Standings, r *Ranks, j *Joined) []byte {
	row := &s.Rows[len(s.Rows)-1]
	dst = r.appendStanding(append(dst, ','), len(s.Rows)-1, row)
	return append(r.appendTrendError(appendMissing(AppendProfile(dst, j, 0), j)), '}')
}

// AppendMember appends the answer about one member that was read with its surroundings,
// around as in [AppendOwn].
func AppendMember(dst []byte, q sidecar.Query, a *sidecar.PageAnswer, around bool, r *Ranks, j *Joined) []byte {
	own, row := &a.Own, 0
	if around {
		row = max(own.Rank-1-own.First, 0)
	}
	dst = AppendHead(dst, q, a.Source, a.Stamp)
	dst = r.appendStanding(append(dst, ','), row, &own.Standing)
	dst = AppendProfile(dst, j, row)
	if around {
		dst = appendRows(append(dst, `,"neighbours":`...), neighboursOf(own), r, j)
	}
	return append(r.appendTrendError(appendMissing(dst, j)), '}')
}

// AppendBatch appends what follows the head of an answer about several members, in the
// requested order.
func AppendBatch(dst []byte, s *sidecar.Standings, r *Ranks, j *Joined) []byte {
	dst = append(dst, `,"members":[`...)
	for i := range s.Rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		row := &s.Rows[i]
		dst = r.appendStanding(append(dst, '{'), i, row)
		dst = append(AppendProfile(dst, j, i), '}')
	}
	return append(appendMissing(append(dst, ']'), j), '}')
}

// AppendMe appends the caller's own standing behind a page that lost its closing
// brace. It has its own seq, because it may be newer than the page.
func AppendMe(dst []byte, me rankcache.Standing, seq uint64, r *Ranks, j *Joined) []byte {
	dst = append(dst, `,"me":`...)
	if !me.Found() {
		return append(dst, `null}`...)
	}
	dst = r.appendStanding(append(dst, '{'), 0, &me)
	dst = appendSeq(append(dst, `,"seq":`...), seq)
	return append(r.appendTrendError(AppendProfile(dst, j, 0)), `}}`...)
}

// AppendOwn is AppendMe with the surroundings that were asked for. The profile of row i
// is that of neighbour i.
func AppendOwn(dst []byte, own *sidecar.Own, around, gap bool, r *Ranks, j *Joined) []byte {
	dst = append(dst, `,"me":`...)
	if !own.Found() {
		return append(dst, `null}`...)
	}
	row := 0 // of the member's profile
	if around {
		row = max(own.Rank-1-own.First, 0)
	}
	dst = r.appendStanding(append(dst, '{'), row, &own.Standing)
	dst = appendSeq(append(dst, `,"seq":`...), own.Seq)
	dst = AppendProfile(dst, j, row)
	if gap {
		dst = r.appendGap(append(dst, `,"gap":`...), own)
	}
	if around {
		dst = appendMissing(appendRows(append(dst, `,"neighbours":`...), neighboursOf(own), r, j), j)
	}
	return append(r.appendTrendError(dst), `}}`...)
}

func neighboursOf(own *sidecar.Own) rankcache.Page {
	return rankcache.Page{Start: own.First, Entries: own.Neighbours}
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

// appendTime appends t in RFC 3339 with milliseconds, UTC. It is written out
// because Time.AppendFormat takes a fifth of the time of a whole standing.
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

// TimeLen is the length of what appendTime appends, quotes included.
const TimeLen = len(`"2006-01-02T15:04:05.000Z"`)

// appendDigits appends the last width digits of n, which is not negative.
func appendDigits(dst []byte, n, width int) []byte {
	dst = append(dst, "0000"[:width]...)
	for i := len(dst) - 1; width > 0; i, width = i-1, width-1 {
		dst[i] += byte(n % 10)
		n /= 10
	}
	return dst
}
