package resp

import (
	"time"

	"rankcache"
	"rankcache/sidecar"
)

// Limits of an answer. Larger ones are the upstream's: they would be held in memory whole.
const (
	maxRows    = 10_000
	maxMembers = 500
)

// scoreRanger is a board that finds rows by score; see localboard's ByScore.
type scoreRanger interface {
	ByScore(lo, hi float64, offset, limit int, direction rankcache.Direction) (page rankcache.Page, total int)
}

// encoder writes replies as one version of the protocol and one server have them.
type encoder struct {
	proto  uint8
	format format
}

// answer appends the reply to q from the copy. It returns false, and dst as it was, if the
// copy can't give it.
func (s *Server) answer(dst []byte, q *form, c *sidecar.Copy, e encoder) ([]byte, bool) {
	if !q.byScore && (q.verb == zRevRange || q.verb == zRange) {
		return s.answerRange(dst, q, c, e)
	}
	if c.Source != sidecar.SourceLocal {
		return dst, false
	}
	switch {
	case q.byScore || q.verb == zCount:
		return e.byScore(dst, q, c.Board)
	case q.verb == zCard:
		page := c.Board.Page(0, 1, rankcache.Descending)
		return appendInt(dst, page.Members), !page.At.IsZero()
	}
	return e.standings(dst, q, c.Board)
}

// answerRange appends rows by rank: the kept reply, if the top has them all.
func (s *Server) answerRange(dst []byte, q *form, c *sidecar.Copy, e encoder) ([]byte, bool) {
	top := c.Top
	from, n := resolve(q.start, q.stop, top.Members)
	if q.order == rankcache.Descending && (from+n <= len(top.Entries) || len(top.Entries) >= top.Members) {
		key := replyKey{from, n, q.score, e}
		kept := s.reader.CopyPages(&sidecar.Query{Board: q.board}, c).Kept(s.slot).(*kept)
		reply := kept.reply(key, func() []byte {
			reply, _ := e.rows(nil, top.Entries[from:from+n], q.score)
			return reply
		})
		return append(dst, reply...), len(reply) > 0
	}
	if c.Source != sidecar.SourceLocal {
		return dst, false
	}
	for members := top.Members; ; {
		if n > maxRows {
			return dst, false
		}
		page := c.Board.Page(from, max(n, 1), q.order)
		if page.At.IsZero() {
			return dst, false
		}
		if page.Members == members {
			return e.rows(dst, page.Entries[:min(n, len(page.Entries))], q.score)
		}
		members = page.Members // it was published in between: the range may end elsewhere
		from, n = resolve(q.start, q.stop, members)
	}
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

func (e encoder) byScore(dst []byte, q *form, b sidecar.Board) ([]byte, bool) {
	board, ok := b.(scoreRanger)
	if !ok {
		return dst, false
	}
	if q.verb == zCount {
		page, total := board.ByScore(q.lo, q.hi, 0, 0, rankcache.Descending)
		return appendInt(dst, total), !page.At.IsZero()
	}
	limit := maxRows + 1
	if q.count >= 0 {
		limit = int(min(q.count, maxRows+1))
	}
	page, _ := board.ByScore(q.lo, q.hi, int(q.offset), limit, q.order)
	if len(page.Entries) > maxRows || page.At.IsZero() { // none: it was emptied since it was found
		return dst, false
	}
	return e.rows(dst, page.Entries, q.score)
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
func (e encoder) standings(dst []byte, q *form, b sidecar.Board) (reply []byte, ok bool) {
	var names [16]string
	var room [16]rankcache.Standing
	members := names[:0]
	for _, m := range q.members {
		members = append(members, text(m))
	}
	rows, head := b.Standings(room[:0], members, q.order)
	if head == nil { // it was emptied since it was found
		return dst, false
	}
	if q.verb == zRank || q.verb == zRevRank {
		return e.rank(dst, &rows[0], q.score)
	}
	reply = dst
	if q.verb == zMScore {
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

func (e encoder) rank(dst []byte, row *rankcache.Standing, score bool) ([]byte, bool) {
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
