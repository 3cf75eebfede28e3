package httpapi

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"rankcache"
	"rankcache/sidecar"
	"rankcache/sidecar/internal/apijson"
	"rankcache/wire"
)

// serve answers one request, or returns the problem with it. Reads wait for Redis and
// for profiles as long as those allow, which is bounded, so they get no deadline of their
// own here.
func (s *Server) serve(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	if p := c.parsePath(ctx.URI().PathOriginal()); p != nil {
		return p
	}
	if p := c.checkMethod(&ctx.Request.Header); p != nil {
		return p
	}
	if c.route.byClass() {
		if p := s.findClass(c); p != nil {
			return p
		}
	}
	if p := c.parseArgs(ctx.URI().QueryString()); p != nil {
		return p
	}
	if c.class != nil {
		if p := c.nameBoard(s.cfg.Now()); p != nil {
			return p
		}
	}
	if c.args.profiles && s.reader.Profiles() == nil {
		return noProfileSource()
	}
	c.ctx = s.traceOf(&ctx.Request.Header)
	switch c.route {
	case routeTop, routeClassTop:
		if c.args.surrounded() || c.args.ranked() {
			return s.whole(ctx, c)
		}
		return s.top(ctx, c)
	case routeBoards:
		return s.boards(ctx, c)
	case routeMember, routeClassMember:
		return s.memberOf(ctx, c)
	case routeBatch:
		return s.batch(ctx, c)
	case routeReference:
		return s.reference(ctx, c)
	case routeClasses:
		return s.listClasses(ctx, c)
	}
	return s.profiles(ctx, c)
}

func noProfileSource() *apijson.Problem {
	return apijson.BadArgument("profiles", "no profile source is configured")
}

// traceOf returns a context for calls to Redis, in the trace that the caller names.
func (s *Server) traceOf(h *fasthttp.RequestHeader) context.Context {
	if s.cfg.Trace == nil {
		return context.Background()
	}
	parent := h.Peek("Traceparent")
	if len(parent) == 0 {
		return context.Background()
	}
	return s.cfg.Trace(context.Background(), string(parent), string(h.Peek("Tracestate")))
}

// top reads the rows, encodes them unless their page is kept, sends the page and records
// the request.
func (s *Server) top(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	a, err := s.reader.Page(c.ctx, c.query, c.args.start, c.args.limit)
	if err != nil {
		return s.problemOf(err)
	}
	if noSuchBoard(&a) {
		ctx.Response.Header.SetCanonical(headerNote, valueNoKey)
	}
	p := s.pagesOf(&c.query, &a)
	if p == nil {
		c.out = s.appendPage(c.out, c, &a)
		if c.args.me {
			c.out = s.appendMe(c.out[:len(c.out)-1], c, &a)
		}
		s.sendOut(ctx, c, a.Source, a.State, a.CurrentAt)
		return nil
	}
	b := s.encoded(c, p, &a)
	if c.args.me {
		c.out = s.appendMe(c.out, c, &a)
		s.sendBehind(ctx, c, b, a.Source, a.CurrentAt)
		return nil
	}
	takes := s.sendBody(ctx, c, b, a.Source, a.CurrentAt)
	if a.Source != sidecar.SourceRedis { // which has no page that is kept
		record(ctx, c, takes)
	}
	return nil
}

// noSuchBoard reports whether Redis has no such key: it has no empty sorted sets.
func noSuchBoard(a *sidecar.Answer) bool { return a.Source == sidecar.SourceRedis && a.Members == 0 }

// encoded returns the page with the rows of a, encoded at most once for all callers.
func (s *Server) encoded(c *call, p *pages, a *sidecar.Answer) *body {
	e := p.entry(c.pageKey())
	if b := e.valid(); b != nil {
		return b
	}
	return s.encode(e, c, p, a)
}

// encode is apart from encoded because its closure would cost a kept page an allocation.
func (s *Server) encode(e *entry, c *call, p *pages, a *sidecar.Answer) *body {
	page := *a
	return e.renew(func() *body {
		var j apijson.Joined
		if c.args.profiles {
			j = p.joinRows(s.reader.Profiles(), page.Entries)
		}
		buffer := s.buffers.Get().(*[]byte)
		defer s.buffers.Put(buffer)
		*buffer = apijson.AppendPage((*buffer)[:0], c.query, c.args.limit, &page, nil, &j)
		*buffer = c.appendClass(*buffer)
		b := newBody(*buffer, page.Source, page.State, j.Fresh)
		p.keepPrevious(page.Entries, &j, b)
		return b
	})
}

// appendPage appends a page that is made for this request alone.
func (s *Server) appendPage(dst []byte, c *call, a *sidecar.Answer) []byte {
	j := s.join(c, a.Entries)
	return c.appendClass(apijson.AppendPage(dst, c.query, c.args.limit, a, nil, &j))
}

// appendMe appends the caller's own standing and the page's closing brace. If Redis could not
// be read, the page is sent all the same and has an error code instead.
func (s *Server) appendMe(dst []byte, c *call, a *sidecar.Answer) []byte {
	me, seq, err := s.reader.Me(c.ctx, c.query, a, c.rows, c.member[:])
	if err != nil {
		return apijson.AppendMeError(dst, s.problemOf(err).Code)
	}
	j := s.joinMembers(c, me.Member)
	return apijson.AppendMe(dst, me, seq, &j)
}

func (s *Server) memberOf(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	if c.args.ranked() {
		return s.ranked(ctx, c)
	}
	if c.args.around >= 0 {
		return s.around(ctx, c)
	}
	found, err := s.reader.Standings(c.ctx, c.query, c.rows, c.member[:])
	if err != nil {
		return s.problemOf(err)
	}
	if found.Rows[0].Rank == 0 {
		return &apijson.Problem{Code: apijson.CodeUnknownMember}
	}
	j := s.joinMembers(c, found.Rows[0].Member)
	c.rows = found.Rows
	c.out = c.appendClass(apijson.AppendStanding(s.appendHead(c.out, &c.query, &found), &found, &j))
	s.sendOut(ctx, c, found.Source, found.State, found.CurrentAt)
	return nil
}

func (s *Server) around(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	a, rank, err := s.reader.Around(c.ctx, c.query, c.member[0], c.args.around)
	if err != nil {
		return s.problemOf(err)
	}
	j := s.join(c, a.Entries)
	c.out = c.appendClass(apijson.AppendAround(c.out, c.query, &a, rank, &j))
	s.sendOut(ctx, c, a.Source, a.State, a.CurrentAt)
	return nil
}

func (s *Server) batch(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	members, p := parseBatch(ctx.PostBody())
	if p != nil {
		return p
	}
	found, err := s.reader.Standings(c.ctx, c.query, c.rows, members)
	if err != nil {
		return s.problemOf(err)
	}
	c.rows = found.Rows
	j := s.joinMembers(c, members...)
	c.out = apijson.AppendBatch(s.appendHead(c.out, &c.query, &found), &found, &j)
	s.sendOut(ctx, c, found.Source, found.State, found.CurrentAt)
	return nil
}

// profiles answers the two routes that ask for profiles alone.
func (s *Server) profiles(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	if s.reader.Profiles() == nil {
		return &apijson.Problem{Code: apijson.CodeUnknownPath, Detail: "no profile source is configured"}
	}
	if c.route == routeProfile {
		return s.profile(ctx, c)
	}
	members, p := parseBatch(ctx.PostBody())
	if p != nil {
		return p
	}
	j := s.load(members)
	c.out = apijson.AppendProfiles(c.out, members, &j)
	s.sendProfiles(ctx, c)
	return nil
}

func (s *Server) profile(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	j := s.load(c.member[:])
	switch {
	case j.Profiles[0] != nil:
	case j.Missing > 0:
		return &apijson.Problem{Code: apijson.CodeNoProfiles}
	default:
		return &apijson.Problem{Code: apijson.CodeUnknownProfile}
	}
	c.out = wire.AppendString(append(c.out, `{"member":`...), c.member[0])
	c.out = append(apijson.AppendProfile(c.out, &j, 0), '}')
	s.sendProfiles(ctx, c)
	return nil
}

// join returns the profiles of the rows if they were requested.
func (s *Server) join(c *call, entries []rankcache.Entry) apijson.Joined {
	if !c.args.profiles {
		return apijson.Joined{}
	}
	return apijson.Join(context.Background(), s.reader.Profiles(), entries)
}

// joinMembers is join for members that may be the memory of the request.
func (s *Server) joinMembers(c *call, members ...string) apijson.Joined {
	if !c.args.profiles {
		return apijson.Joined{}
	}
	return s.load(members)
}

func (s *Server) load(members []string) apijson.Joined {
	own := make([]string, len(members))
	for i, m := range members {
		own[i] = strings.Clone(m)
	}
	return apijson.JoinMembers(context.Background(), s.reader.Profiles(), own)
}

// reference answers with the OpenAPI document.
func (s *Server) reference(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	ctx.Response.Header.SetContentType("application/yaml")
	ctx.Response.SetBodyString(sidecar.OpenAPI())
	s.counters.add(ctx.ConnID(), c.route, outcomeNoSource)
	return nil
}

// problemOf returns the problem of err. Why a call to Redis failed is for the log, once a
// second.
func (s *Server) problemOf(err error) *apijson.Problem {
	p := apijson.ProblemOf(err)
	if p.Code != apijson.CodeUnavailable {
		return p
	}
	s.failedReads.Do(func() { s.log.Warn("reads of Redis fail", "error", err) })
	return p
}
