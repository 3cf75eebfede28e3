package resp

import (
	"context"
	"strconv"
	"time"

	"rankcache"
)

// agreement holds the replies of a pipeline that are not sent yet, and must agree about hot pages.
// A member that is not on it is asked of Redis, with all else that is passed on; if Redis has it where the page has
// another, the page is read again, and answers all.
type agreement struct {
	shown []shown // replies from pages, and about members that no page had, in their order
	asked []asked // commands of the run that will be such
}

// shown is a reply that could be given from a page: its command in session.in, and itself in session.out.
type shown struct {
	command, reply span
	proto          version
}

// asked is a command of the run, and how many stand before it there.
type asked struct {
	command span
	before  int
}

// rest gives back what a long pipeline took.
func (a *agreement) rest() {
	if cap(a.shown)+cap(a.asked) > keepArgs {
		*a = agreement{}
	}
}

// show takes note of what out will be with the reply to the next command, which has length n.
func (c *session) show(n int, out []byte) {
	c.agree.shown = append(c.agree.shown, shown{span{c.from, c.from + n}, span{len(c.out), len(out)}, c.proto})
}

// formOf parses a read again: its form holds the memory of in alone.
func (c *session) formOf(command span) (q form) {
	cmd, _, _ := new(parser).next(c.in[command.from:command.to]) // it was parsed before
	v, _ := verbOf(cmd.args[0])
	q, _ = c.server.facts.Load().parseForm(v, cmd.args)
	q.board, _ = c.server.boardOf(cmd.args[1], true)
	return q
}

// settle has a run's replies agree with the pages: those asked for are in out from a place on, ends are all's.
func (c *session) settle(asked []asked, at int, ends []int) {
	var behind bool
	for _, a := range asked {
		reply, q := span{at, at + ends[a.before]}, c.formOf(a.command)
		if a.before > 0 {
			reply.from = at + ends[a.before-1]
		}
		c.agree.shown = append(c.agree.shown, shown{a.command, reply, c.proto})
		if c.belongs(&q, c.out[reply.from:reply.to]) {
			behind = true
			c.renewed(q.board)
		}
	}
	if behind {
		c.showAgain()
	}
}

// renewed waits until the page of a board was read again.
func (c *session) renewed(board rankcache.BoardID) {
	if read := c.server.reader.Written(board); read != nil {
		select {
		case <-read:
		case <-c.server.lived.Done():
		case <-time.After(c.server.cfg.UpstreamTimeout):
		}
	}
}

// belongs reports whether the reply of Redis has a member among the rows that are on the page of its board.
func (c *session) belongs(q *form, reply []byte) bool {
	if reply[0] == '-' {
		return false
	}
	for i, value := range texts(reply) {
		score, err := strconv.ParseFloat(value, 64)
		switch ranked := q.verb == zRank || q.verb == zRevRank; {
		case err != nil || ranked && i > 0: // the score beside a rank
		case !ranked && c.onPage(rankcache.Query{Board: q.board, Limit: 1, Range: &rankcache.ScoreRange{Least: score, Most: score}}):
			return true
		case ranked:
			row := int(score)
			if q.verb == zRank {
				row = max(c.members(q.board)-1-row, 0)
			}
			return c.onPage(rankcache.Query{Board: q.board, Start: row, Limit: 1})
		}
	}
	return false
}

// onPage reports whether a hot page has all rows that a query wants.
func (c *session) onPage(q rankcache.Query) bool {
	q.CopiesOnly, q.Uncounted = true, true
	a := rankcache.One(context.Background(), c.server.reader, q)
	return a.Err == nil && a.Source == rankcache.SourceHot
}

// members returns how many members a board has by its page, 0 without one.
func (c *session) members(board rankcache.BoardID) int {
	return rankcache.One(context.Background(), c.server.reader, rankcache.Query{Board: board, Limit: 1, CopiesOnly: true, Uncounted: true}).Members
}

// showAgain gives the replies from the pages of now, as far as those have them.
func (c *session) showAgain() {
	out, from := make([]byte, 0, len(c.out)), 0
	for i := range c.agree.shown {
		s, l := &c.agree.shown[i], &c.lookup
		q := c.formOf(s.command)
		l.read(c.server.reader, &q, c.server.cfg.MaxAge)
		out = append(out, c.out[from:s.reply.from]...)
		from = s.reply.to
		at := len(out)
		ok := l.as[0].Err == nil && !c.isBehind(&q, l.as[0].CurrentAt)
		if ok {
			out, ok = l.append(out, &q, c.server, s.proto)
		}
		if !ok {
			out = append(out, c.out[s.reply.from:from]...)
		}
		s.reply = span{at, len(out)}
	}
	c.out = append(c.out[:0], append(out, c.out[from:]...)...)
}
