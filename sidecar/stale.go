package sidecar

import (
	"container/list"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"rankcache"
	"rankcache/rooms"
)

// maxStale bounds the memory of kept pages, in bytes.
const maxStale = 16 << 20

// stale keeps the pages that Redis answered lately, and answers them again, with their age, while Redis does not.
// It is safe for concurrent use.
type stale struct {
	next  source
	keep  time.Duration
	tiers func() *rooms.Tiers

	mu    sync.Mutex // nothing is called with it held
	pages map[stalePage]*list.Element
	order list.List // of *keptPage, the latest read first
	bytes int
}

// stalePage names a page.
type stalePage struct {
	board        rankcache.BoardID
	order        rankcache.Direction
	start, limit int
}

type keptPage struct {
	of    stalePage
	page  rankcache.Answer // without members
	bytes int
}

func (s *stale) read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, at []int) {
	s.next.read(ctx, qs, as, at)
	for _, i := range at {
		switch q, a := &qs[i], &as[i]; {
		case q.Limit == 0 || !q.Plain():
		case a.Err == nil && a.Source == rankcache.SourceRedis && !a.CurrentAt.IsZero():
			s.take(q, a)
		case errors.Is(a.Err, rankcache.ErrUnavailable), errors.Is(a.Err, ErrOverloaded):
			s.answer(q, a)
		}
	}
}

// take keeps a page, and lets go of those that are too old, or too much.
func (s *stale) take(q *rankcache.Query, a *rankcache.Answer) {
	of, bytes := stalePage{q.Board, q.Order, q.Start, q.Limit}, 512+len(q.Board)+a.Data.Bytes()
	for i := range a.Entries {
		bytes += 32 + len(a.Entries[i].Member)
	}
	page := *a
	page.Own, page.Kept = nil, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.pages[of]; e != nil {
		kept := e.Value.(*keptPage)
		s.bytes += bytes - kept.bytes
		kept.page, kept.bytes = page, bytes
		s.order.MoveToFront(e)
	} else {
		of.board = rankcache.BoardID(strings.Clone(string(of.board))) // it may be the memory of a request
		s.pages[of] = s.order.PushFront(&keptPage{of, page, bytes})
		s.bytes += bytes
	}
	for e := s.order.Back(); s.bytes > maxStale || time.Since(e.Value.(*keptPage).page.CurrentAt) > s.keep; e = s.order.Back() {
		kept := s.order.Remove(e).(*keptPage)
		delete(s.pages, kept.of)
		if s.bytes -= kept.bytes; s.order.Len() == 0 {
			return
		}
	}
}

// answer answers a page that Redis has not, unless the query bounds its age or the board is bypassed. A member that is
// not on it keeps the error.
func (s *stale) answer(q *rankcache.Query, a *rankcache.Answer) {
	if q.Bounded() || q.Primary || s.tiers().Bypassed(q.Board) {
		return
	}
	s.mu.Lock()
	e := s.pages[stalePage{q.Board, q.Order, q.Start, q.Limit}]
	var page rankcache.Answer
	if e != nil {
		page = e.Value.(*keptPage).page
	}
	s.mu.Unlock()
	if age := time.Since(page.CurrentAt); age < 0 || age > s.keep { // below 0: a clock was set back
		return
	}
	away := a.Err
	a.Begin(q, page.Source, page.Stamp, page.CurrentAt)
	page.Own, page.Form = a.Own, a.Form
	*a = page
	a.Find(q, a.Entries, a.Start)
	for i := range a.Own {
		if a.Own[i].Err == rankcache.ErrNotKept {
			a.Own[i].Err = away
		}
	}
}
