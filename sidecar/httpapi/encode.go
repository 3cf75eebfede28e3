package httpapi

import (
	"context"
	"errors"
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
	"rankcache/sidecar/encode"
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
	s.reader, s.now, s.log, s.failedReads = r, now, log, rate.Sometimes{Interval: time.Second}
	s.buffers.New = func() any { return new([]byte) }
}

// isOwn reports whether the page is made for this request alone.
func (s *encoder) isOwn(c *call, a *rankcache.Answer) bool {
	return a.Kept == nil || c.query().Ranked() || c.args.trend && c.surrounded()
}

// encoded returns the page with the rows of a, encoded at most once for all callers.
func (s *encoder) encoded(c *call, a *rankcache.Answer) *body {
	key := c.key()
	e := s.pagesOf(a).entries.Get(&key, newEntry)
	if b := e.valid(); b != nil {
		return b
	}
	return s.encode(e, c, a)
}

// encode is apart from encoded because its closure would cost a kept page an allocation.
func (s *encoder) encode(e *entry, c *call, a *rankcache.Answer) *body {
	return e.renew(func() *body {
		var j encode.Joined
		if c.args.profiles {
			j = s.previous.joinRows(c.query().Board, s.reader.Profiles(), a.Entries)
		}
		buffer := s.buffers.Get().(*[]byte)
		defer s.buffers.Put(buffer)
		show := encode.ShowOf(c.query(), a, s.pageTrend(c, a))
		*buffer = encode.AppendPage((*buffer)[:0], c.query(), a, &show, &j)
		*buffer = c.appendClass(*buffer, a.Life)
		fresh := j.Fresh
		if show.Trend != nil {
			fresh = s.freshTrend(c.before, fresh)
		}
		b := newBody(*buffer, a, fresh)
		s.previous.keep(c.query().Board, a.Entries, &j, b)
		return b
	})
}

// appendPage appends a page that is made for this request alone, with the caller.
func (s *encoder) appendPage(dst []byte, c *call, a *rankcache.Answer) []byte {
	j := s.join(c, a.Entries)
	show := encode.ShowOf(c.query(), a, s.pageTrend(c, a))
	dst = c.appendClass(encode.AppendPage(dst, c.query(), a, &show, &j), a.Life)
	if !c.me() {
		return dst
	}
	return s.appendMe(dst[:len(dst)-1], c, a)
}

// appendMe appends the caller, or the error code of one that could not be read, and the page's closing brace.
func (s *encoder) appendMe(dst []byte, c *call, a *rankcache.Answer) []byte {
	own := &a.Own[0]
	if own.Err != nil {
		return encode.AppendMeError(dst, s.problemOf(own.Err).Code)
	}
	j, show := s.joinOwn(c, a), encode.ShowOf(c.query(), a, s.ownTrend(c))
	return encode.AppendMe(dst, c.query(), own, &show, &j)
}

func (s *encoder) appendMembers(dst []byte, c *call, a *rankcache.Answer) []byte {
	show := encode.ShowOf(c.query(), a, s.pageTrend(c, a))
	dst = s.appendHead(dst, c.query(), a)
	switch {
	case c.args.byRank:
		dst = s.appendPlaces(dst, c, a, &show)
	case c.route.batch():
		j := s.joinOwn(c, a)
		dst = encode.AppendMembers(dst, a, &show, &j)
	default:
		j := s.joinOwn(c, a)
		dst = encode.AppendMember(dst, c.query(), &a.Own[0], &show, &j)
	}
	return c.appendClass(dst, a.Life)
}

// appendPlaces appends the members best first, as many as are wanted, and the caller.
func (s *encoder) appendPlaces(dst []byte, c *call, a *rankcache.Answer, show *encode.Show) []byte {
	rows := a.Places(c.query().Mode)
	me := slices.IndexFunc(rows, func(p rankcache.Place) bool { return a.Own[p.At].Member == c.member[0] })
	shown := rows
	if c.args.rows > 0 {
		shown = rows[:min(c.args.rows, len(rows))]
	}
	var own []rankcache.Place
	if me >= 0 && c.member[0] != "" {
		own = rows[me : me+1]
	}
	var j encode.Joined
	if c.args.profiles {
		var members []string
		for _, p := range slices.Concat(shown, own) {
			members = append(members, a.Own[p.At].Member)
		}
		j = s.load(members)
	}
	return encode.AppendPlaces(dst, a, shown, own, show, &j)
}

// appendBoard appends one answer of a batch, with what a single one has in headers.
func (s *encoder) appendBoard(dst []byte, c *call, now time.Time) []byte {
	a := &c.as[0]
	if a.Err != nil {
		dst = wire.AppendString(append(dst, `{"board":`...), string(c.query().Board))
		return append(s.problemOf(a.Err).Append(append(dst, `,"problem":`...)), '}')
	}
	dst = append(dst, `{"page":`...)
	if s.isOwn(c, a) {
		dst = s.appendPage(dst, c, a)
	} else if dst = append(dst, s.encoded(c, a).data...); c.me() {
		dst = s.appendMe(dst[:len(dst)-1], c, a)
	}
	if !a.CurrentAt.IsZero() {
		dst = appendAge(append(dst, `,"age_ms":`...), now, a.CurrentAt)
	}
	if a.Run != 0 {
		dst = append(a.AppendState(append(dst, `,"state":"`...)), '"')
	}
	return append(dst, '}')
}

// encodeTogether returns the bytes of each answer, waiting for all profiles at once. A panic is the caller's.
func (s *encoder) encodeTogether(calls []call, now time.Time) [][]byte {
	parts := make([][]byte, len(calls))
	var encoders sync.WaitGroup
	var fault atomic.Pointer[string]
	for i := range calls {
		encoders.Go(func() {
			defer func() {
				if f := recover(); f != nil {
					text := fmt.Sprintf("%v\n%s", f, debug.Stack())
					fault.Store(&text)
				}
			}()
			parts[i] = s.appendBoard(nil, &calls[i], now)
		})
	}
	encoders.Wait()
	if f := fault.Load(); f != nil {
		panic(*f)
	}
	return parts
}

// pageTrend returns the trend of an answer's rows, neighbours and members, nil if it is not asked for.
func (s *encoder) pageTrend(c *call, a *rankcache.Answer) *encode.Trend {
	if c.before == nil {
		return nil
	}
	members := slices.Clone(c.query().Members)
	for i := range a.Entries {
		members = append(members, a.Entries[i].Member)
	}
	for i := range a.Own {
		for j := range a.Own[i].Neighbours {
			members = append(members, a.Own[i].Neighbours[j].Member)
		}
	}
	c.before.trend = s.readTrend(c, members)
	return c.before.trend
}

// freshTrend returns what tells whether a page with this trend is still right; fresh tells that of profiles.
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

// ownTrend returns the caller's trend, which pageTrend has unless the page was encoded for another call.
func (s *encoder) ownTrend(c *call) *encode.Trend {
	if c.before == nil || c.before.trend != nil {
		return c.before.known()
	}
	return s.readTrend(c, c.query().Members)
}

// readTrend returns the ranks of members in the period before. An answer is sent all the same where they can't be read.
func (s *encoder) readTrend(c *call, members []string) *encode.Trend {
	if c.before.board == "" {
		return &encode.Trend{}
	}
	q := rankcache.Query{Board: c.before.board, Room: c.query().Room, Order: c.query().Order, Mode: c.query().Mode, Members: members, Uncounted: true, RanksOnly: true}
	ranks, until, err := s.reader.FormerRanks(c.ctx, &q, c.before.now)
	if err != nil {
		return &encode.Trend{Error: s.problemOf(err).Code}
	}
	c.before.until = until
	return &encode.Trend{Ranks: ranks}
}

// join returns the profiles of the rows if they were requested.
func (s *encoder) join(c *call, entries []rankcache.Entry) encode.Joined {
	if !c.args.profiles {
		return encode.Joined{}
	}
	return encode.Join(context.Background(), s.reader.Profiles(), entries)
}

// joinOwn returns the profiles of the neighbours of the member, without them those of the members.
func (s *encoder) joinOwn(c *call, a *rankcache.Answer) encode.Joined {
	switch {
	case !c.args.profiles:
		return encode.Joined{}
	case len(a.Own) == 1 && len(a.Own[0].Neighbours) > 0:
		return s.join(c, a.Own[0].Neighbours)
	}
	return s.load(c.query().Members)
}

func (s *encoder) load(members []string) encode.Joined {
	own := make([]string, len(members))
	for i, m := range members {
		own[i] = strings.Clone(m)
	}
	return encode.JoinMembers(context.Background(), s.reader.Profiles(), own)
}

// problemOf returns the problem of err. Why a call to Redis failed is for the log, once a second.
func (s *encoder) problemOf(err error) *encode.Problem {
	p := encode.ProblemOf(err)
	if p.Code != encode.CodeUnavailable || errors.Is(err, rankcache.ErrRegion) {
		return p
	}
	s.failedReads.Do(func() { s.log.Warn("reads of Redis fail", "error", err) })
	return p
}
