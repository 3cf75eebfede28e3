package sidecar

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"rankcache"
)

// call is the state of one request. A connection uses one for all of its
// requests, so that an answer may stand in it until it has been written.
type call struct {
	route   route
	query   Query
	member  [1]string // the member of the path, or who asks
	args    args
	decoded []byte               // strings that came percent-encoded
	out     []byte               // an answer made for this request alone
	etag    []byte               // its tag
	rows    []rankcache.Standing // room for the standings of a local board
}

// callOf returns the call of the request's connection, as good as new.
func callOf(ctx *fasthttp.RequestCtx) *call {
	conn, ok := ctx.Conn().(*dataConn)
	if !ok || conn.call == nil {
		c := &call{rows: make([]rankcache.Standing, 0, 1)}
		if ok {
			conn.call = c
		}
		return c
	}
	conn.call.reset()
	return conn.call
}

// mostKept is the longest answer, in bytes, whose room an idle connection keeps.
const mostKept = 4 << 10

// shrink frees the room of an unusually long answer.
func (c *call) shrink() {
	if cap(c.out) > mostKept {
		c.out, c.decoded, c.rows = nil, nil, nil
	}
}

// reset forgets the request before: its strings have been overwritten.
func (c *call) reset() {
	clear(c.rows)
	*c = call{decoded: c.decoded[:0], out: c.out[:0], etag: c.etag[:0], rows: c.rows[:0]}
}

// serve answers one request, or says what is wrong with it. Reads wait for
// Redis and profiles as long as those allow, which is bounded, so they are given
// no deadline of their own here.
func (s *DataServer) serve(ctx *fasthttp.RequestCtx, c *call) *problem {
	if p := c.parsePath(ctx.URI().PathOriginal()); p != nil {
		return p
	}
	if p := c.checkMethod(&ctx.Request.Header); p != nil {
		return p
	}
	if p := c.parseArgs(ctx.URI().QueryString()); p != nil {
		return p
	}
	if c.args.profiles && s.reader.profiles == nil {
		return badArgument("profiles", "no profile source is configured")
	}
	switch c.route {
	case routeTop:
		return s.top(ctx, c)
	case routeMember:
		return s.memberOf(ctx, c)
	case routeBatch:
		return s.batch(ctx, c)
	case routeReference:
		return s.reference(ctx, c)
	}
	return s.profiles(ctx, c)
}

func (c *call) checkMethod(h *fasthttp.RequestHeader) *problem {
	switch {
	case c.route.post() && !h.IsPost():
		return &problem{code: CodeBadMethod, allow: "POST"}
	case !c.route.post() && !h.IsGet() && !h.IsHead():
		return &problem{code: CodeBadMethod, allow: "GET, HEAD"}
	}
	return nil
}

func (s *DataServer) top(ctx *fasthttp.RequestCtx, c *call) *problem {
	a, err := s.reader.Page(context.Background(), c.query, c.args.start, c.args.limit)
	if err != nil {
		return s.problemOf(err)
	}
	p := s.pagesOf(&c.query, &a)
	if p == nil {
		c.out = s.appendPage(c.out, c, &a)
		if c.args.me {
			c.out = s.appendMe(c.out[:len(c.out)-1], c, &a)
		}
		s.sendOut(ctx, c, a.Source, a.CurrentAt)
		return nil
	}
	b := s.encoded(c, p, &a)
	if !c.args.me {
		s.sendBody(ctx, c, b, a.Source, a.CurrentAt)
		return nil
	}
	c.out = s.appendMe(c.out, c, &a)
	s.sendBehind(ctx, c, b, a.Source, a.CurrentAt)
	return nil
}

func (c *call) pageKey() pageKey {
	return pageKey{c.args.start, c.args.limit, c.query.Order, c.args.profiles}
}

// encoded returns the page with the rows of a, encoded at most once for all callers.
func (s *DataServer) encoded(c *call, p *pages, a *Answer) *body {
	e := p.entry(c.pageKey())
	if b := e.valid(); b != nil {
		return b
	}
	return s.encode(e, c, p, a)
}

// encode is apart from encoded because the function that it makes would cost the
// kept page an allocation.
func (s *DataServer) encode(e *entry, c *call, p *pages, a *Answer) *body {
	page := *a
	return e.renew(func() *body {
		j := s.joinRows(c, p, page.Entries)
		room := s.room.Get().(*[]byte)
		defer s.room.Put(room)
		*room = appendPage((*room)[:0], c.query, c.args.limit, &page, &j)
		b := newBody(*room, page.Source, j.fresh)
		p.keepPrevious(page.Entries, &j, b)
		return b
	})
}

// appendPage appends a page that is made for this request alone.
func (s *DataServer) appendPage(dst []byte, c *call, a *Answer) []byte {
	j := s.join(c, a.Entries)
	return appendPage(dst, c.query, c.args.limit, a, &j)
}

// appendMe appends the caller's own standing and what closes the page. A page
// that is here is not refused because Redis could not say where the caller
// stands: it says so instead.
func (s *DataServer) appendMe(dst []byte, c *call, a *Answer) []byte {
	me, seq, err := s.reader.Me(context.Background(), c.query, a, c.rows, c.member[:])
	if err != nil {
		return appendMeError(dst, s.problemOf(err).code)
	}
	j := s.joinMembers(c, me.Member)
	return appendMe(dst, me, seq, &j)
}

func (s *DataServer) memberOf(ctx *fasthttp.RequestCtx, c *call) *problem {
	if c.args.around >= 0 {
		return s.around(ctx, c)
	}
	found, err := s.reader.Standings(context.Background(), c.query, c.rows, c.member[:])
	if err != nil {
		return s.problemOf(err)
	}
	if found.Rows[0].Rank == 0 {
		return &problem{code: CodeUnknownMember}
	}
	j := s.joinMembers(c, found.Rows[0].Member)
	c.rows = found.Rows
	c.out = appendStanding(s.appendHead(c.out, &c.query, &found), &found, &j)
	s.sendOut(ctx, c, found.Source, found.CurrentAt)
	return nil
}

func (s *DataServer) around(ctx *fasthttp.RequestCtx, c *call) *problem {
	a, rank, err := s.reader.Around(context.Background(), c.query, c.member[0], c.args.around)
	if err != nil {
		return s.problemOf(err)
	}
	j := s.join(c, a.Entries)
	c.out = appendAround(c.out, c.query, &a, rank, &j)
	s.sendOut(ctx, c, a.Source, a.CurrentAt)
	return nil
}

func (s *DataServer) batch(ctx *fasthttp.RequestCtx, c *call) *problem {
	members, p := parseBatch(ctx.PostBody())
	if p != nil {
		return p
	}
	found, err := s.reader.Standings(context.Background(), c.query, c.rows, members)
	if err != nil {
		return s.problemOf(err)
	}
	c.rows = found.Rows
	j := s.joinMembers(c, members...)
	c.out = appendBatch(s.appendHead(c.out, &c.query, &found), &found, &j)
	s.sendOut(ctx, c, found.Source, found.CurrentAt)
	return nil
}

// problemOf says what the caller is told of err. Why Redis could not be asked is
// for the log, once a second.
func (s *DataServer) problemOf(err error) *problem {
	p := problemOf(err)
	if p.code != CodeUnavailable {
		return p
	}
	now, last := time.Now().Unix(), s.complained.Load()
	if now != last && s.complained.CompareAndSwap(last, now) {
		s.log.Warn("reads of Redis fail", "error", err)
	}
	return p
}
