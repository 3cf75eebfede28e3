package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/sidecar"
	"rankcache/sidecar/internal/apijson"
	"rankcache/wire"
)

// encoder makes answers of what the reader returns: their bytes, with profiles.
type encoder struct {
	pageCache
	now         func() time.Time
	log         *slog.Logger
	buffers     sync.Pool      // of *[]byte, to encode pages in before their length is known
	failedReads rate.Sometimes // limits the log of failed reads
}

func (s *encoder) init(r *sidecar.Reader, now func() time.Time, log *slog.Logger) {
	s.pageCache, s.now, s.log, s.failedReads = newPageCache(r), now, log, rate.Sometimes{Interval: time.Second}
	s.buffers.New = func() any { return new([]byte) }
}

// encoded returns the page with the rows of a, encoded at most once for all callers.
func (s *encoder) encoded(c *call, p *pages, a *sidecar.Answer) *body {
	c.args.form = a.Form
	e := p.entry(&c.args.pageKey)
	if b := e.valid(); b != nil {
		return b
	}
	return s.encode(e, c, p, a)
}

// encode is apart from encoded because its closure would cost a kept page an allocation.
func (s *encoder) encode(e *entry, c *call, p *pages, a *sidecar.Answer) *body {
	page := *a
	return e.renew(func() *body {
		var j apijson.Joined
		if c.args.profiles {
			j = p.joinRows(s.reader.Profiles(), page.Entries)
		}
		buffer := s.buffers.Get().(*[]byte)
		defer s.buffers.Put(buffer)
		trend := s.pageTrend(c, page.Entries, nil)
		*buffer = apijson.AppendPage((*buffer)[:0], c.query, c.args.limit, &page, apijson.Plain(page.Form).With(trend), &j)
		*buffer = c.appendClass(*buffer, page.Life)
		fresh := j.Fresh
		if trend != nil {
			fresh = s.freshTrend(c.before, fresh)
		}
		b := newBody(*buffer, page.Source, page.State, fresh)
		p.keepPrevious(page.Entries, &j, b)
		return b
	})
}

// appendPage appends a page that is made for this request alone.
func (s *encoder) appendPage(dst []byte, c *call, a *sidecar.Answer) []byte {
	j := s.join(c, a.Entries)
	trend := s.pageTrend(c, a.Entries, nil)
	return c.appendClass(apijson.AppendPage(dst, c.query, c.args.limit, a, apijson.Plain(a.Form).With(trend), &j), a.Life)
}

// appendMe appends the caller's own standing and the page's closing brace. If Redis could not
// be read, the page is sent all the same and has an error code instead.
func (s *encoder) appendMe(dst []byte, c *call, a *sidecar.Answer) []byte {
	me, seq, err := s.reader.Me(c.ctx, &c.query, a, c.rows, c.member[:])
	if err != nil {
		return apijson.AppendMeError(dst, s.problemOf(err).Code)
	}
	j := s.joinMembers(c, me.Member)
	return apijson.AppendMe(dst, me, seq, apijson.Plain(a.Form).With(s.ownTrend(c)), &j)
}

// appendWhole appends a page that is made for this request alone, with the caller.
func (s *encoder) appendWhole(dst []byte, c *call, a *sidecar.PageAnswer) []byte {
	read := c.read()
	j := s.join(c, a.Entries)
	trend := s.pageTrend(c, a.Entries, a.Own.Neighbours)
	dst = c.appendClass(apijson.AppendPage(dst, c.query, c.args.limit, &a.Answer, apijson.RanksOf(&read.Page, a).With(trend), &j), a.Life)
	if !c.args.me {
		return dst
	}
	return s.appendOwn(dst[:len(dst)-1], c, a)
}

// appendOwn appends the caller's surroundings and what closes the page, as appendMe does.
func (s *encoder) appendOwn(dst []byte, c *call, a *sidecar.PageAnswer) []byte {
	own := &a.Own
	if own.Err != nil {
		return apijson.AppendMeError(dst, s.problemOf(own.Err).Code)
	}
	j, read := s.joinOwn(c, own), c.read()
	return apijson.AppendOwn(dst, own, c.args.around >= 0, c.args.gap, apijson.OwnRanks(&read.Page, a).With(s.ownTrend(c)), &j)
}

// appendBoard appends one answer of a batch, with what a single one has in headers.
func (s *encoder) appendBoard(dst []byte, c *call, a *sidecar.PageAnswer, now time.Time) []byte {
	if a.Err != nil {
		dst = wire.AppendString(append(dst, `{"board":`...), string(c.query.Board))
		return append(s.problemOf(a.Err).Append(append(dst, `,"problem":`...)), '}')
	}
	dst = append(dst, `{"page":`...)
	if p := s.pagesOf(&c.query, &a.Answer); p == nil || c.args.ranked() {
		dst = s.appendWhole(dst, c, a)
	} else if dst = append(dst, s.encoded(c, p, &a.Answer).data...); c.args.me {
		dst = s.appendOwn(dst[:len(dst)-1], c, a)
	}
	if !a.CurrentAt.IsZero() {
		dst = appendAge(append(dst, `,"age_ms":`...), now, a.CurrentAt)
	}
	if a.Run != 0 {
		dst = append(a.AppendState(append(dst, `,"state":"`...)), '"')
	}
	return append(dst, '}')
}

// encodeTogether returns the bytes of each answer. All wait for their profiles at the same
// time. A panic is the caller's, who can recover from it.
func (s *encoder) encodeTogether(calls []call, answers []sidecar.PageAnswer, now time.Time) [][]byte {
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

// pageTrend returns the trend of a page's rows, neighbours and caller, nil if it is not asked
// for.
func (s *encoder) pageTrend(c *call, rows, neighbours []rankcache.Entry) *apijson.Trend {
	if c.before == nil {
		return nil
	}
	var members []string
	if c.args.me {
		members = append(members, c.member[0])
	}
	c.before.trend = s.readTrend(c, slices.Concat(rows, neighbours), members)
	return c.before.trend
}

// freshTrend returns what tells whether a page with the trend that was read is still right;
// fresh tells that of its profiles.
func (s *encoder) freshTrend(before *periodBefore, fresh func() bool) func() bool {
	switch until := before.until; {
	case before.trend.Error != "":
		return func() bool { return false }
	case until.IsZero():
		return fresh
	default:
		return func() bool { return s.now().Before(until) && (fresh == nil || fresh()) }
	}
}

// ownTrend returns the trend of the caller of a page, which pageTrend has looked up unless
// the page was encoded for another call.
func (s *encoder) ownTrend(c *call) *apijson.Trend {
	if c.before == nil || c.before.trend != nil {
		return c.before.known()
	}
	return s.readTrend(c, nil, c.member[:])
}

// trendOf returns the trend of rows and the call's member, nil if it is not asked for.
func (s *encoder) trendOf(c *call, rows []rankcache.Entry) *apijson.Trend {
	if c.before == nil {
		return nil
	}
	return s.readTrend(c, rows, c.member[:])
}

// readTrend returns the ranks of rows and members in the period before. An answer is sent
// all the same where they can't be read.
func (s *encoder) readTrend(c *call, rows []rankcache.Entry, members []string) *apijson.Trend {
	members = slices.Clone(members)
	for i := range rows {
		members = append(members, rows[i].Member)
	}
	q := sidecar.Query{Board: c.before.board, Room: c.query.Room, Order: c.query.Order}
	ranks, until, err := s.reader.RanksOf(c.ctx, &q, c.before.now, c.args.mode, members)
	if err != nil {
		return &apijson.Trend{Error: s.problemOf(err).Code}
	}
	c.before.until = until
	return &apijson.Trend{Ranks: ranks}
}

// join returns the profiles of the rows if they were requested.
func (s *encoder) join(c *call, entries []rankcache.Entry) apijson.Joined {
	if !c.args.profiles {
		return apijson.Joined{}
	}
	return apijson.Join(context.Background(), s.reader.Profiles(), entries)
}

// joinOwn returns the profiles of the neighbours, without them that of the member.
func (s *encoder) joinOwn(c *call, own *sidecar.Own) apijson.Joined {
	if own.Rank > 0 && c.args.around >= 0 {
		return s.join(c, own.Neighbours)
	}
	return s.joinMembers(c, own.Member)
}

// joinMembers is join for members that may be the memory of the request.
func (s *encoder) joinMembers(c *call, members ...string) apijson.Joined {
	if !c.args.profiles {
		return apijson.Joined{}
	}
	return s.load(members)
}

func (s *encoder) load(members []string) apijson.Joined {
	own := make([]string, len(members))
	for i, m := range members {
		own[i] = strings.Clone(m)
	}
	return apijson.JoinMembers(context.Background(), s.reader.Profiles(), own)
}

// problemOf returns the problem of err. Why a call to Redis failed is for the log, once a
// second.
func (s *encoder) problemOf(err error) *apijson.Problem {
	p := apijson.ProblemOf(err)
	if p.Code != apijson.CodeUnavailable {
		return p
	}
	s.failedReads.Do(func() { s.log.Warn("reads of Redis fail", "error", err) })
	return p
}
