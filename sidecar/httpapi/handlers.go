package httpapi

import (
	"context"
	"encoding/json"

	"github.com/valyala/fasthttp"

	"rankcache"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
	"rankcache/wire"
)

// serve answers one request, or returns the problem with it. Reads wait for Redis and for profiles as long as those
// allow, which is bounded, so they get no deadline of their own here.
func (s *Server) serve(ctx *fasthttp.RequestCtx, c *call) *encode.Problem {
	if p := c.parsePath(ctx.URI().PathOriginal()); p != nil {
		if p.Code == encode.CodeUnknownPath && s.changes.answer(ctx) {
			return nil
		}
		if s.cfg.Compat != nil && p.Code == encode.CodeUnknownPath {
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
	} else if c.args.trend {
		if p := s.findBefore(c); p != nil {
			return p
		}
	}
	if c.args.profiles && s.reader.Profiles() == nil {
		return noProfileSource()
	}
	c.ctx = s.traceOf(&ctx.Request.Header)
	switch c.route {
	case routeTop, routeClassTop, routeMember, routeClassMember, routeScore, routeClassScore:
		return s.read(ctx, c)
	case routeBatch, routeClassBatch:
		if p := c.list(ctx.PostBody()); p != nil {
			return p
		}
		return s.read(ctx, c)
	case routeBoards:
		return s.boards(ctx, c)
	case routeReference:
		return s.reference(ctx, c)
	case routeClasses:
		return s.listClasses(ctx, c)
	}
	return s.profiles(ctx, c)
}

// findBefore finds the board of the period before that of a board that is named by its id.
func (s *Server) findBefore(c *call) *encode.Problem {
	before, err := s.classes.inForce().file.Before(c.query().Board)
	if err != nil {
		return encode.BadArgument("trend", err.Error())
	}
	c.before = &periodBefore{board: before.ID, now: s.cfg.Now()}
	return nil
}

func noProfileSource() *encode.Problem {
	return encode.BadArgument("profiles", "no profile source is configured")
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

// read answers a question about one board.
func (s *Server) read(ctx *fasthttp.RequestCtx, c *call) *encode.Problem {
	s.approximate(c)
	s.reader.Read(c.ctx, c.qs[:], c.as[:])
	a := &c.as[0]
	if a.Err != nil {
		return s.problemOf(a.Err)
	}
	if c.route.page() {
		s.page(ctx, c, a)
		return nil
	}
	if c.route.score() {
		c.out = c.appendClass(encode.AppendScore(c.out, c.query(), a), a.Life)
		s.sendOut(ctx, c)
		return nil
	}
	for i := range a.Own {
		if own := &a.Own[i]; own.Err != nil {
			return s.problemOf(own.Err)
		} else if !own.Found() && !c.route.batch() {
			return &encode.Problem{Code: encode.CodeUnknownMember}
		}
	}
	c.out = s.appendMembers(c.out, c, a)
	s.sendOut(ctx, c)
	return nil
}

// approximate makes ranks of members approximate if the class says so and the request nothing else.
func (s *Server) approximate(c *call) {
	switch q := c.query(); {
	case len(q.Members) == 0:
	case c.args.byRank && q.Mode == rankcache.Approx:
		q.Mode = rankcache.Ordinal
	case !c.args.seen[argRankMode] && !c.args.byRank && s.reader.Tiers().Approximate(q.Board):
		q.Mode = rankcache.Approx
	}
}

// page encodes the rows, unless their page is kept, sends the page and records the request.
func (s *Server) page(ctx *fasthttp.RequestCtx, c *call, a *rankcache.Answer) {
	c.noKey = !a.Source.IsCopy() && a.Members == 0 // Redis has no empty sorted sets
	if s.isOwn(c, a) {
		c.out = s.appendPage(c.out, c, a)
		s.sendOut(ctx, c)
		return
	}
	b := s.encoded(c, a)
	if c.me() {
		c.out = s.appendMe(c.out, c, a)
		s.sendBehind(ctx, c, b)
		return
	}
	var asked lists
	asked.read(&ctx.Request.Header)
	takes := s.sendBody(ctx, c, b, &asked)
	if a.Source.IsCopy() { // Redis has no page that is kept
		record(ctx, c, takes, &asked)
	}
}

// boards answers several pages, each with its own problem.
func (s *Server) boards(ctx *fasthttp.RequestCtx, c *call) *encode.Problem {
	calls, p := parseBoards(ctx.PostBody())
	if p != nil {
		return p
	}
	qs, as, profiles := make([]rankcache.Query, len(calls)), make([]rankcache.Answer, len(calls)), false
	for i := range calls {
		if calls[i].ctx = c.ctx; calls[i].args.trend {
			if p := s.findBefore(&calls[i]); p != nil {
				return inBoard(p, i)
			}
		}
		qs[i] = *calls[i].query()
		profiles = profiles || calls[i].args.profiles
	}
	if profiles && s.reader.Profiles() == nil {
		return noProfileSource()
	}
	s.reader.Read(c.ctx, qs, as)
	for i := range calls {
		calls[i].qs[0], calls[i].as[0] = qs[i], as[i]
	}
	var parts [][]byte
	if profiles {
		parts = s.encodeTogether(calls, ctx.Time())
	}
	c.out = append(c.out, `{"boards":[`...)
	for i := range calls {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		if profiles {
			c.out = append(c.out, parts[i]...)
		} else {
			c.out = s.appendBoard(c.out, &calls[i], ctx.Time())
		}
	}
	c.out = append(c.out, `]}`...)
	s.sendBoards(ctx, c)
	return nil
}

// profiles answers the two routes that ask for profiles alone.
func (s *Server) profiles(ctx *fasthttp.RequestCtx, c *call) *encode.Problem {
	if s.reader.Profiles() == nil {
		return &encode.Problem{Code: encode.CodeUnknownPath, Detail: "no profile source is configured"}
	}
	if c.route == routeProfile {
		return s.profile(ctx, c)
	}
	members, p := parseBatch(ctx.PostBody())
	if p != nil {
		return p
	}
	j := s.load(members)
	c.out = encode.AppendProfiles(c.out, members, &j)
	s.sendProfiles(ctx, c)
	return nil
}

func (s *Server) profile(ctx *fasthttp.RequestCtx, c *call) *encode.Problem {
	j := s.load(c.member[:])
	switch {
	case j.Profiles[0] != nil:
	case j.Missing > 0:
		return &encode.Problem{Code: encode.CodeNoProfiles}
	default:
		return &encode.Problem{Code: encode.CodeUnknownProfile}
	}
	c.out = wire.AppendString(append(c.out, `{"member":`...), c.member[0])
	c.out = append(encode.AppendProfile(c.out, &j, 0), '}')
	s.sendProfiles(ctx, c)
	return nil
}

func (s *Server) listClasses(ctx *fasthttp.RequestCtx, c *call) *encode.Problem {
	rows, err := s.classes.rows(s.cfg.Now())
	var body []byte
	if err == nil {
		body, err = json.Marshal(map[string]any{"classes": rows})
	}
	if err != nil {
		s.log.Error("classes can't be listed", "error", err)
		return &encode.Problem{Code: encode.CodeInternal}
	}
	ctx.Response.Header.SetCanonical(headerCache, valueShared)
	ctx.Response.Header.SetContentType(contentJSON)
	ctx.Response.SetBodyRaw(body)
	s.count(ctx, c.route, outcomeNoSource)
	return nil
}

// compat answers a request of an older form; unknown is the problem with other paths.
func (s *Server) compat(ctx *fasthttp.RequestCtx, c *call, unknown *encode.Problem) *encode.Problem {
	uri, h := ctx.URI(), &ctx.Request.Header
	answer, p, ours := s.cfg.Compat.Answer(s.traceOf(h), string(h.Method()), string(uri.PathOriginal()), string(uri.QueryString()), ctx.PostBody())
	if !ours {
		return unknown
	}
	c.route = routeCompat
	if p != nil {
		s.refuse(ctx, c.route, &encode.Problem{Code: encode.Code(p.Code), Argument: p.Argument, Detail: p.Detail, Allow: p.Allow})
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

func (s *Server) reference(ctx *fasthttp.RequestCtx, c *call) *encode.Problem {
	ctx.Response.Header.SetContentType("application/yaml")
	ctx.Response.SetBodyString(sidecar.OpenAPI())
	s.count(ctx, c.route, outcomeNoSource)
	return nil
}
