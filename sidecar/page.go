package sidecar

import (
	"strconv"
	"time"

	"rankcache"
)

// appendHead begins the object of an answer.
func appendHead(dst []byte, q Query, source Source, s rankcache.Stamp) []byte {
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

// appendPage appends a whole page of q.
func appendPage(dst []byte, q Query, limit int, a *Answer, j *joined) []byte {
	dst = appendHead(dst, q, a.Source, a.Stamp)
	dst = append(dst, `,"start":`...)
	dst = strconv.AppendInt(dst, int64(a.Start), 10)
	dst = append(dst, `,"limit":`...)
	dst = strconv.AppendInt(dst, int64(limit), 10)
	dst = appendRows(append(dst, `,"entries":`...), a.Page, j)
	return append(appendMissing(dst, j), '}')
}

// appendRows appends the rows of a page as an array.
func appendRows(dst []byte, p rankcache.Page, j *joined) []byte {
	dst = append(dst, '[')
	for i := range p.Entries {
		if i > 0 {
			dst = append(dst, ',')
		}
		e := &p.Entries[i]
		dst = append(dst, '{')
		dst = appendPlace(dst, p.Start+i+1, e.Member, e.Score)
		dst = appendProfile(dst, j, i)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// appendPlace appends the fields of one row; rank 0 is a member that is not on
// the board.
func appendPlace(dst []byte, rank int, member string, score float64) []byte {
	if rank == 0 {
		dst = rankcache.AppendString(append(dst, `"rank":null,"member":`...), member)
		return append(dst, `,"score":null`...)
	}
	dst = strconv.AppendInt(append(dst, `"rank":`...), int64(rank), 10)
	dst = rankcache.AppendString(append(dst, `,"member":`...), member)
	return rankcache.AppendScore(append(dst, `,"score":`...), score)
}

func appendProfile(dst []byte, j *joined, i int) []byte {
	if p, asked := j.at(i); asked {
		dst = append(dst, `,"profile":`...)
		if j.offsets != nil {
			j.offsets[i] = len(dst)
		}
		dst = append(dst, p...)
	}
	return dst
}

// appendMissing says how many profiles may still come.
func appendMissing(dst []byte, j *joined) []byte {
	if j.profiles == nil {
		return dst
	}
	return strconv.AppendInt(append(dst, `,"profiles_missing":`...), int64(j.missing), 10)
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

// timeLen is the length of what appendTime appends, quotes included.
const timeLen = len(`"2006-01-02T15:04:05.000Z"`)

// appendDigits appends the last width digits of n, which is not negative.
func appendDigits(dst []byte, n, width int) []byte {
	dst = append(dst, "0000"[:width]...)
	for i := len(dst) - 1; width > 0; i, width = i-1, width-1 {
		dst[i] += byte(n % 10)
		n /= 10
	}
	return dst
}
