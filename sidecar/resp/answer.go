package resp

import (
	"context"
	"fmt"
	"slices"
	"time"

	"rankcache"
)

// Limits of an answer. Larger ones are the upstream's: they would be held in memory whole.
const (
	maxRows    = 10_000
	maxMembers = 500
)

// errRows reports more rows than one answer about a split board has.
var errRows = fmt.Errorf("it has more than %d such rows, want fewer", rankcache.MaxTop)

type version uint8 // a version of the protocol, 2 or 3, which replies are written in

// lookup is a question to the copies of boards, with its answer. It is used again.
type lookup struct {
	qs      [1]rankcache.Query
	as      [1]rankcache.Answer
	members []string
	scores  rankcache.ScoreRange
	n       int       // rows of the answer that a read by rank wants; -1: too many
	off     time.Time // when the page was current that lacks a member; zero: none does
}

// read reads what q asks for from a copy of its board, which is counted elsewhere, or of a split board from copies of
// its shards that are not older than maxAge, 0: of any age, and else from Redis.
func (l *lookup) read(r rankcache.Reader, q *form, maxAge time.Duration) {
	l.off = time.Time{}
	l.qs[0] = rankcache.Query{Board: q.board, Order: q.order, Limit: 1, CopiesOnly: !q.split, Uncounted: !q.split}
	if q.split {
		l.qs[0].MaxAge = maxAge
	}
	switch query := &l.qs[0]; {
	case q.byScore || q.verb == zCount:
		l.scores = rankcache.ScoreRange{Least: q.lo, Most: q.hi}
		query.Range, query.Start = &l.scores, int(q.offset)
		if query.Limit = maxRows + 1; q.verb == zCount {
			query.Limit = 1
		} else if q.count >= 0 {
			query.Limit = int(min(q.count, maxRows+1))
		}
		if q.split { // more rows are refused by append
			query.Limit = max(min(query.Limit, rankcache.MaxTop-int(min(q.offset, rankcache.MaxTop))), 0)
		}
	case len(q.members) > 0:
		l.members = l.members[:0]
		for _, m := range q.members {
			l.members = append(l.members, text(m))
		}
		if query.Members = l.members; q.split {
			query.Limit = 0
		} else { // a hot page answers of members beside rows, best first
			query.Order = rankcache.Descending
		}
	case q.verb == zRevRange || q.verb == zRange:
		l.readRange(r, q)
		return
	}
	r.Read(context.Background(), l.qs[:], l.as[:])
	a := &l.as[0]
	switch {
	case a.Err == nil && a.Source != rankcache.SourceLocal && !q.split && (len(q.members) == 0 || slices.ContainsFunc(a.Own, isElsewhere)):
		if len(q.members) > 0 {
			l.off = a.CurrentAt
		}
		a.Fail(rankcache.ErrNotKept)
	case q.split:
		failOwn(a)
	case q.verb == zRank && a.Err == nil && a.Own[0].Rank > 0:
		a.Own[0].Rank = a.Members + 1 - a.Own[0].Rank
	}
}

// isElsewhere reports whether a member is not on the page.
func isElsewhere(own rankcache.Own) bool { return own.Err != nil }

// failOwn makes an error of a member that of the answer.
func failOwn(a *rankcache.Answer) {
	for i := range a.Own {
		if err := a.Own[i].Err; err != nil {
			a.Fail(err)
			return
		}
	}
}

const splitReads = 4 // how often a split board is read by rank until its end is the same; the last one is answered

// readRange reads rows by rank. Counting from the end takes a look first, and the end may have moved by then.
func (l *lookup) readRange(r rankcache.Reader, q *form) {
	query, a, most := &l.qs[0], &l.as[0], maxRows
	if q.split {
		most = rankcache.MaxTop
	}
	if q.start >= 0 && q.start <= rankcache.MaxStart && q.stop >= q.start && q.stop-q.start < int64(most) && (!q.split || q.stop < int64(most)) {
		query.Start, query.Limit = int(q.start), int(q.stop-q.start)+1
	}
	for reads := 1; ; reads++ {
		r.Read(context.Background(), l.qs[:], l.as[:])
		if a.Err != nil {
			return
		}
		from, n := resolve(q.start, q.stop, a.Members)
		if l.n = n; n == 0 || from == query.Start && n <= query.Limit || q.split && reads == splitReads && n <= most {
			return
		}
		if l.n = -1; n > most {
			return
		}
		query.Start, query.Limit = from, n
	}
}

// append appends the reply. It returns false, and dst as it was, if the answer can't give it.
func (l *lookup) append(dst []byte, q *form, s *Server, v version) ([]byte, bool) {
	a := &l.as[0]
	switch {
	case q.verb == zCount:
		return appendInt(dst, a.Matches), true
	case q.byScore:
		if len(a.Entries) > maxRows || q.split && l.isCut(q) {
			return dst, false
		}
		return v.rows(dst, a.Entries, q.score), true
	case q.verb == zCard:
		return appendInt(dst, a.Members), true
	case len(q.members) > 0:
		return v.standings(dst, q, a.Own), true
	case l.n < 0:
		return dst, false
	}
	rows := a.Entries[:min(l.n, len(a.Entries))]
	if a.Kept == nil {
		return v.rows(dst, rows, q.score), true
	}
	kept := a.Kept.By(s, newKept).(*kept)
	reply := kept.Get(&replyKey{a.Start, len(rows), q.score, v}, func() []byte { return v.rows(nil, rows, q.score) })
	return append(dst, reply...), true
}

func (l *lookup) isCut(q *form) bool {
	rows := int64(l.as[0].Matches) - q.offset
	if q.count >= 0 {
		rows = min(rows, q.count)
	}
	return rows > int64(l.qs[0].Limit)
}

// resolve returns first row and number of rows from start to stop; negative ranks count from the end.
func resolve(start, stop int64, members int) (from, n int) {
	all := int64(members)
	if start < 0 {
		start = max(start+all, 0)
	}
	if stop < 0 {
		stop += all
	}
	stop = min(stop, all-1)
	if start > stop {
		return 0, 0
	}
	return int(start), int(stop-start) + 1
}

func (v version) rows(dst []byte, rows []rankcache.Entry, scores bool) []byte {
	pairs := scores && v == 3
	n := len(rows)
	if scores && !pairs {
		n *= 2
	}
	dst = appendArray(dst, n)
	for i := range rows {
		if pairs {
			dst = append(dst, "*2\r\n"...)
		}
		if dst = appendBulk(dst, rows[i].Member); scores {
			dst = v.score(dst, rows[i].Score)
		}
	}
	return dst
}

func (v version) score(dst []byte, score float64) []byte {
	var room [32]byte
	digits := appendScore(room[:0], score)
	if v == 3 {
		return append(append(append(dst, ','), digits...), "\r\n"...)
	}
	return appendBulk(dst, digits)
}

func (v version) null(dst []byte, array bool) []byte {
	switch {
	case v == 3:
		return append(dst, "_\r\n"...)
	case array:
		return append(dst, "*-1\r\n"...)
	}
	return append(dst, "$-1\r\n"...)
}

func (v version) standings(dst []byte, q *form, rows []rankcache.Own) []byte {
	if q.verb == zRank || q.verb == zRevRank {
		return v.rank(dst, &rows[0], q.score)
	}
	if q.verb == zMScore {
		dst = appendArray(dst, len(rows))
	}
	for i := range rows {
		if rows[i].Rank == 0 {
			dst = v.null(dst, false)
		} else {
			dst = v.score(dst, rows[i].Score)
		}
	}
	return dst
}

func (v version) rank(dst []byte, row *rankcache.Own, score bool) []byte {
	switch {
	case row.Rank == 0:
		return v.null(dst, score)
	case !score:
		return appendInt(dst, row.Rank-1)
	}
	return v.score(appendInt(append(dst, "*2\r\n"...), row.Rank-1), row.Score)
}

// fresh reports whether the copy may be read, which was current at a time.
func (s *Server) fresh(currentAt time.Time) bool {
	return s.cfg.MaxAge == 0 || time.Since(currentAt) <= s.cfg.MaxAge
}

func (s *Server) boardOf(key []byte, well bool) (rankcache.BoardID, bool) {
	board, ok := s.cfg.Names.BoardOfKey(text(key))
	return board, ok && well
}
