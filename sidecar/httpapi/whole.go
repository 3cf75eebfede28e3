package httpapi

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"rankcache"
	"rankcache/sidecar"
	"rankcache/sidecar/internal/apijson"
	"rankcache/wire"
)

// whole answers a page with the caller and what stands next to it, read together.
func (s *Server) whole(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	a := s.reader.WholePage(c.ctx, c.read())
	if a.Err != nil {
		return s.problemOf(a.Err)
	}
	if noSuchBoard(&a.Answer) {
		ctx.Response.Header.SetCanonical(headerNote, valueNoKey)
	}
	p := s.pagesOf(&c.query, &a.Answer)
	if p == nil || c.args.ranked() {
		c.out = s.appendWhole(c.out, c, &a)
		s.sendOut(ctx, c, a.Source, a.State, a.CurrentAt)
		return nil
	}
	b := s.encoded(c, p, &a.Answer)
	c.out = s.appendOwn(c.out, c, &a.Own)
	s.sendBehind(ctx, c, b, a.Source, a.CurrentAt)
	return nil
}

// read returns what the call asks for.
func (c *call) read() sidecar.PageRead {
	return sidecar.PageRead{Query: c.query, Page: rankcache.PageQuery{
		Start: c.args.start, Limit: c.args.limit, Member: c.member[0], Around: c.args.around, Gap: c.args.gap,
		Mode: c.args.mode, Percentile: c.args.percentile}}
}

// ranked answers the standing of one member, with neighbours if there are to be, in a mode
// of ranks or with percentiles.
func (s *Server) ranked(ctx *fasthttp.RequestCtx, c *call) *apijson.Problem {
	c.args.limit = 0
	read := c.read()
	a := s.reader.WholePage(c.ctx, read)
	if err := cmp.Or(a.Err, a.Own.Err); err != nil {
		return s.problemOf(err)
	}
	if a.Own.Rank == 0 {
		return &apijson.Problem{Code: apijson.CodeUnknownMember}
	}
	j := s.joinOwn(c, &a.Own)
	c.out = c.appendClass(apijson.AppendRanked(c.out, c.query, &a, c.args.around >= 0, apijson.OwnRanks(&read.Page, &a.Own), &j))
	s.sendOut(ctx, c, a.Source, a.State, a.CurrentAt)
	return nil
}

// appendWhole appends a page that is made for this request alone, with the caller.
func (s *Server) appendWhole(dst []byte, c *call, a *sidecar.PageAnswer) []byte {
	read := c.read()
	j := s.join(c, a.Entries)
	dst = c.appendClass(apijson.AppendPage(dst, c.query, c.args.limit, &a.Answer, apijson.RanksOf(&read.Page, a), &j))
	if !c.args.me {
		return dst
	}
	return s.appendOwn(dst[:len(dst)-1], c, &a.Own)
}

// appendOwn appends the caller's surroundings and what closes the page, as appendMe does.
func (s *Server) appendOwn(dst []byte, c *call, own *sidecar.Own) []byte {
	if own.Err != nil {
		return apijson.AppendMeError(dst, s.problemOf(own.Err).Code)
	}
	j, read := s.joinOwn(c, own), c.read()
	return apijson.AppendOwn(dst, own, c.args.around >= 0, c.args.gap, apijson.OwnRanks(&read.Page, own), &j)
}

// joinOwn returns the profiles of the neighbours, without them that of the member.
func (s *Server) joinOwn(c *call, own *sidecar.Own) apijson.Joined {
	if own.Rank > 0 && c.args.around >= 0 {
		return s.join(c, own.Neighbours)
	}
	return s.joinMembers(c, own.Member)
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

// encodeTogether returns the bytes of each answer. All wait for their profiles at the same
// time. A panic is the caller's, who can recover from it.
func (s *Server) encodeTogether(calls []call, answers []sidecar.PageAnswer, now time.Time) [][]byte {
	parts := make([][]byte, len(answers))
	var encoders sync.WaitGroup
	var fault atomic.Pointer[string]
	for i := range answers {
		encoders.Go(func() {
			defer func() {
				if f := recover(); f != nil {
					text := fmt.Sprintf("%v\n%s", f, debug.Stack())
					fault.Store(&text)
				}
			}()
			parts[i] = s.appendBoard(nil, &calls[i], &answers[i], now)
		})
	}
	encoders.Wait()
	if f := fault.Load(); f != nil {
		panic(*f)
	}
	return parts
}

// appendBoard appends one answer of a batch, with what a single one has in headers.
func (s *Server) appendBoard(dst []byte, c *call, a *sidecar.PageAnswer, now time.Time) []byte {
	if a.Err != nil {
		dst = wire.AppendString(append(dst, `{"board":`...), string(c.query.Board))
		return append(s.problemOf(a.Err).Append(append(dst, `,"problem":`...)), '}')
	}
	dst = append(dst, `{"page":`...)
	if p := s.pagesOf(&c.query, &a.Answer); p == nil || c.args.ranked() {
		dst = s.appendWhole(dst, c, a)
	} else if dst = append(dst, s.encoded(c, p, &a.Answer).data...); c.args.me {
		dst = s.appendOwn(dst[:len(dst)-1], c, &a.Own)
	}
	if !a.CurrentAt.IsZero() {
		dst = appendAge(append(dst, `,"age_ms":`...), now, a.CurrentAt)
	}
	if a.Run != 0 {
		dst = append(a.AppendState(append(dst, `,"state":"`...)), '"')
	}
	return append(dst, '}')
}
