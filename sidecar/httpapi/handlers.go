package httpapi

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/valyala/fasthttp"

	"rankcache/sidecar"
	"rankcache/sidecar/internal/apijson"
	"rankcache/wire"
)

// serve answers one request, or returns the problem with it. Reads wait for Redis and
// for profiles as long as those allow, which is bounded, so they get no deadline of their
// own here.
func (s *Server) serve(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	if p := c.parsePath(ctx.URI().PathOriginal()); p != nil {
		if s.cfg.Compat != nil && p.Code == apijson.CodeUnknownPath {
			return s.compat(ctx, c, p)
		}
		return p
	}
	if p := c.checkMethod(&ctx.Request.Header); p != nil {
		return p
	}
	if c.route.byClass() {
		if p := c.find(s.classes.inForce(), c.args.name); p != nil {
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
	var a sidecar.Answer
	if err := s.reader.ReadPage(c.ctx, &c.query, c.args.start, c.args.limit, &a); err != nil {
		return s.problemOf(err)
	}
	c.noKey = noSuchBoard(&a)
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
	var asked lists
	asked.read(&ctx.Request.Header)
	takes := s.sendBody(ctx, c, b, &asked, a.Source, a.CurrentAt)
	if a.Source.Kept() { // Redis has no page that is kept
		record(ctx, c, takes, &asked)
	}
	return nil
}

// whole answers a page with the caller and what stands next to it, read together.
func (s *Server) whole(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	a := s.reader.WholePage(c.ctx, c.read())
	if a.Err != nil {
		return s.problemOf(a.Err)
	}
	c.noKey = noSuchBoard(&a.Answer)
	p := s.pagesOf(&c.query, &a.Answer)
	if p == nil || c.args.ranked() || c.args.trend {
		c.out = s.appendWhole(c.out, c, &a)
		s.sendOut(ctx, c, a.Source, a.State, a.CurrentAt)
		return nil
	}
	b := s.encoded(c, p, &a.Answer)
	c.out = s.appendOwn(c.out, c, &a)
	s.sendBehind(ctx, c, b, a.Source, a.CurrentAt)
	return nil
}

// noSuchBoard reports whether Redis has no such key: it has no empty sorted sets.
func noSuchBoard(a *sidecar.Answer) bool { return !a.Source.Kept() && a.Members == 0 }

func (s *Server) memberOf(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	if c.args.ranked() || c.args.around >= 0 {
		return s.surrounded(ctx, c)
	}
	found := sidecar.Standings{Rows: c.rows}
	if err := s.reader.ReadStandings(c.ctx, &c.query, c.member[:], &found); err != nil {
		return s.problemOf(err)
	}
	if !found.Rows[0].Found() {
		return &apijson.Problem{Code: apijson.CodeUnknownMember}
	}
	j := s.joinMembers(c, found.Rows[0].Member)
	c.rows = found.Rows
	c.out = c.appendClass(apijson.AppendStanding(s.appendHead(c.out, &c.query, &found), &found, apijson.Plain(found.Form).With(s.trendOf(c, nil)), &j), found.Life)
	s.sendOut(ctx, c, found.Source, found.State, found.CurrentAt)
	return nil
}

// surrounded answers the standing of one member with neighbours, or in a mode of ranks, or
// with percentiles.
func (s *Server) surrounded(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	c.args.limit = 0
	read := c.read()
	a := s.reader.WholePage(c.ctx, read)
	if err := cmp.Or(a.Err, a.Own.Err); err != nil {
		return s.problemOf(err)
	}
	if !a.Own.Found() {
		return &apijson.Problem{Code: apijson.CodeUnknownMember}
	}
	j := s.joinOwn(c, &a.Own)
	c.out = c.appendClass(apijson.AppendMember(c.out, c.query, &a, c.args.around >= 0, apijson.OwnRanks(&read.Page, &a).With(s.trendOf(c, a.Own.Neighbours)), &j), a.Life)
	s.sendOut(ctx, c, a.Source, a.State, a.CurrentAt)
	return nil
}

func (s *Server) batch(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	members, p := parseBatch(ctx.PostBody())
	if p != nil {
		return p
	}
	found := sidecar.Standings{Rows: c.rows}
	var err error
	if c.args.ranked() {
		found, err = s.reader.RankedStandings(c.ctx, c.query, c.args.mode, members)
	} else {
		err = s.reader.ReadStandings(c.ctx, &c.query, members, &found)
		c.rows = found.Rows // the others are shared
	}
	if err != nil {
		return s.problemOf(err)
	}
	j := s.joinMembers(c, members...)
	c.out = apijson.AppendBatch(s.appendHead(c.out, &c.query, &found), &found, apijson.StandingRanks(c.args.mode, c.args.percentile, &found), &j)
	s.sendOut(ctx, c, found.Source, found.State, found.CurrentAt)
	return nil
}

// boards answers several pages, each with its own problem.
func (s *Server) boards(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	calls, p := parseBoards(ctx.PostBody())
	if p != nil {
		return p
	}
	reads, profiles := make([]sidecar.PageRead, len(calls)), false
	for i := range calls {
		reads[i] = calls[i].read()
		profiles = profiles || calls[i].args.profiles
	}
	if profiles && s.reader.Profiles() == nil {
		return noProfileSource()
	}
	answers := s.reader.Batch(c.ctx, reads)
	var parts [][]byte
	if profiles {
		parts = s.encodeTogether(calls, answers, ctx.Time())
	}
	c.out = append(c.out, `{"boards":[`...)
	for i := range answers {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		if profiles {
			c.out = append(c.out, parts[i]...)
		} else {
			c.out = s.appendBoard(c.out, &calls[i], &answers[i], ctx.Time())
		}
	}
	c.out = append(c.out, `]}`...)
	s.sendBoards(ctx, c)
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

// listClasses answers with the classes in force.
func (s *Server) listClasses(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	rows, err := s.classes.rows(s.cfg.Now())
	var body []byte
	if err == nil {
		body, err = json.Marshal(map[string]any{"classes": rows})
	}
	if err != nil {
		s.log.Error("classes can't be listed", "error", err)
		return &apijson.Problem{Code: apijson.CodeInternal}
	}
	ctx.Response.Header.SetCanonical(headerCache, valueShared)
	ctx.Response.Header.SetContentType(contentJSON)
	ctx.Response.SetBodyRaw(body)
	s.count(ctx, c.route, outcomeNoSource)
	return nil
}

// compat answers a request of an older form; unknown is the problem with other paths.
func (s *Server) compat(ctx *fasthttp.RequestCtx, c *call, unknown *apijson.Problem) *apijson.Problem {
	uri, h := ctx.URI(), &ctx.Request.Header
	answer, p, ours := s.cfg.Compat.Answer(s.traceOf(h), string(h.Method()), string(uri.PathOriginal()), string(uri.QueryString()), ctx.PostBody())
	if !ours {
		return unknown
	}
	c.route = routeCompat
	if p != nil {
		s.refuse(ctx, c.route, p)
		if answer == nil {
			return nil
		}
	} else {
		s.count(ctx, c.route, outcomeNoSource)
	}
	ctx.Response.Header.SetCanonical(headerCache, valuePrivate)
	ctx.Response.Header.SetContentType(contentJSON)
	ctx.Response.SetBodyRaw(answer)
	return nil
}

// reference answers with the OpenAPI document.
func (s *Server) reference(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	ctx.Response.Header.SetContentType("application/yaml")
	ctx.Response.SetBodyString(sidecar.OpenAPI())
	s.count(ctx, c.route, outcomeNoSource)
	return nil
}
