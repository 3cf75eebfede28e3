package resp

import (
	"context"
	"time"

	"rankcache"
)

// Limits of an answer. Larger ones are the upstream's: they would be held in memory whole.
const (
	maxRows    = 10_000
	maxMembers = 500
)

// encoder writes replies as one version of the protocol and one server have them.
type encoder struct {
	proto  uint8
	format format
}

// lookup is a question to the copies of boards, with its answer. It is used again.
type lookup struct {
	qs      [1]rankcache.Query
	as      [1]rankcache.Answer
	members []string
	scores  rankcache.ScoreRange
	n       int // rows of the answer that a read by rank wants; -1: too many
}

// read reads what q asks for from a copy of its board.
func (l *lookup) read(r rankcache.Reader, q *form) {
	l.qs[0] = rankcache.Query{Board: q.board, Order: q.order, Limit: 1, CopiesOnly: true, Uncounted: true}
	switch query := &l.qs[0]; {
	case q.byScore || q.verb == zCount:
		l.scores = rankcache.ScoreRange{Least: q.lo, Most: q.hi}
		query.Range, query.Start = &l.scores, int(q.offset)
		if query.Limit = maxRows + 1; q.verb == zCount {
			query.Limit = 1
		} else if q.count >= 0 {
			query.Limit = int(min(q.count, maxRows+1))
		}
	case len(q.members) > 0:
		l.members = l.members[:0]
		for _, m := range q.members {
			l.members = append(l.members, text(m))
		}
		query.Members, query.Limit = l.members, 0
	case q.verb == zRevRange || q.verb == zRange:
		l.readRange(r, q)
		return
	}
	r.Read(context.Background(), l.qs[:], l.as[:])
	if a := &l.as[0]; a.Err == nil && a.Source != rankcache.SourceLocal {
		a.Fail(rankcache.ErrNotKept)
	}
}

// readRange reads rows by rank. Where ranks count from the end, that has to be known first; it is
// another one if the board is published in between.
func (l *lookup) readRange(r rankcache.Reader, q *form) {
	query, a := &l.qs[0], &l.as[0]
	if q.start >= 0 && q.start <= rankcache.MaxStart && q.stop >= q.start && q.stop-q.start < maxRows {
		query.Start, query.Limit = int(q.start), int(q.stop-q.start)+1
	}
	for {
		r.Read(context.Background(), l.qs[:], l.as[:])
		if a.Err != nil {
			return
		}
		from, n := resolve(q.start, q.stop, a.Members)
		if l.n = n; n == 0 || from == query.Start && n <= query.Limit {
			return
		}
		if l.n = -1; n > maxRows {
			return
		}
		query.Start, query.Limit = from, n
	}
}

// append appends the reply. It returns false, and dst as it was, if the answer can't give it.
func (l *lookup) append(dst []byte, q *form, s *Server, e encoder) ([]byte, bool) {
	a := &l.as[0]
	switch {
	case q.verb == zCount:
		return appendInt(dst, a.Matches), true
	case q.byScore:
		if len(a.Entries) > maxRows {
			return dst, false
		}
		return e.rows(dst, a.Entries, q.score)
	case q.verb == zCard:
		return appendInt(dst, a.Members), true
	case len(q.members) > 0:
		return e.standings(dst, q, a.Own)
	case l.n < 0:
		return dst, false
	}
	rows := a.Entries[:min(l.n, len(a.Entries))]
	if a.Kept == nil {
		return e.rows(dst, rows, q.score)
	}
	kept := a.Kept.By(s, newKept).(*kept)
	reply := kept.Get(&replyKey{a.Start, len(rows), q.score, e}, func() []byte {
		reply, _ := e.rows(nil, rows, q.score)
		return reply
	})
	return append(dst, reply...), len(reply) > 0
}

// resolve returns the first row and the number of rows from start to stop of a board
// with so many members; negative ranks count from the end.
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

// rows appends rows. It returns false if it is not known how the upstream writes a score.
func (e encoder) rows(dst []byte, rows []rankcache.Entry, scores bool) (reply []byte, ok bool) {
	pairs := scores && e.proto == 3
	n := len(rows)
	if scores && !pairs {
		n *= 2
	}
	reply = appendArray(dst, n)
	for i := range rows {
		if pairs {
			reply = append(reply, "*2\r\n"...)
		}
		reply = appendBulk(reply, rows[i].Member)
		if scores {
			if reply, ok = e.score(reply, rows[i].Score); !ok {
				return dst, false
			}
		}
	}
	return reply, true
}

func (e encoder) score(dst []byte, score float64) ([]byte, bool) {
	var room [32]byte
	digits, ok := e.format.append(room[:0], score)
	if e.proto == 3 {
		return append(append(append(dst, ','), digits...), "\r\n"...), ok
	}
	return appendBulk(dst, digits), ok
}

// null appends the reply for what is not there.
func (e encoder) null(dst []byte, array bool) []byte {
	switch {
	case e.proto == 3:
		return append(dst, "_\r\n"...)
	case array:
		return append(dst, "*-1\r\n"...)
	}
	return append(dst, "$-1\r\n"...)
}

// standings appends ranks or scores of members.
func (e encoder) standings(dst []byte, q *form, rows []rankcache.Own) (reply []byte, ok bool) {
	if q.verb == zRank || q.verb == zRevRank {
		return e.rank(dst, &rows[0], q.score)
	}
	if reply = dst; q.verb == zMScore {
		reply = appendArray(reply, len(rows))
	}
	for i := range rows {
		if rows[i].Rank == 0 {
			reply = e.null(reply, false)
		} else if reply, ok = e.score(reply, rows[i].Score); !ok {
			return dst, false
		}
	}
	return reply, true
}

func (e encoder) rank(dst []byte, row *rankcache.Own, score bool) ([]byte, bool) {
	switch {
	case row.Rank == 0:
		return e.null(dst, score), true
	case !score:
		return appendInt(dst, row.Rank-1), true
	}
	reply, ok := e.score(appendInt(append(dst, "*2\r\n"...), row.Rank-1), row.Score)
	if !ok {
		return dst, false
	}
	return reply, true
}

// fresh reports whether the copy may be read, which was current at a time.
func (s *Server) fresh(currentAt time.Time) bool {
	return s.cfg.MaxAge == 0 || time.Since(currentAt) <= s.cfg.MaxAge
}

// boardOf returns the board of a key.
func (s *Server) boardOf(key []byte, well bool) (rankcache.BoardID, bool) {
	board, ok := s.cfg.Names.BoardOfKey(text(key))
	return board, ok && well
}
