package httpapi

import (
	"sync"
	"sync/atomic"

	"rankcache"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
)

// pageKey tells the pages of one top apart.
type pageKey struct {
	start, limit int
	order        rankcache.Direction
	source       rankcache.Source
	profiles     bool
	form         rankcache.ScoreForm // as in [rankcache.Answer]
	trend        bool
	incomplete   bool              // as in [rankcache.Answer]
	class        *rooms.Class      // that the page tells of, nil: of none
	state        rooms.PeriodState // of the class's period, as in the page
}

// key returns the key of the page that answers the call.
func (c *call) key() pageKey {
	q, a := &c.qs[0], &c.as[0]
	k := pageKey{start: q.Start, limit: q.Limit, order: q.Order, source: a.Source, profiles: c.args.profiles, form: a.Form, trend: c.args.trend, incomplete: a.Incomplete}
	if c.class != nil {
		k.class, k.state = c.class.Class, c.period.State
	}
	return k
}

// pages holds the encoded pages of one top. It lives as long as the top is the newest.
type pages struct {
	entries rankcache.Few[pageKey, *entry]
	// head is how answers about members of a local board begin.
	head atomic.Pointer[[]byte]
}

func newPages() any { return new(pages) }

// pageCache keeps the encoded pages of each newest top.
type pageCache struct {
	reader   *sidecar.Reader
	previous previousPages
}

// pagesOf returns the pages that the rows of a belong to, nil if there are none.
func (s *pageCache) pagesOf(a *rankcache.Answer) *pages {
	if a.Kept == nil {
		return nil
	}
	return a.Kept.By(s, newPages).(*pages)
}

// appendHead begins an answer about members. Of a local board the bytes are kept:
// formatting a time and four numbers takes as long as finding a member.
func (s *pageCache) appendHead(dst []byte, q *rankcache.Query, a *rankcache.Answer) []byte {
	p := s.pagesOf(a)
	if p == nil || q.Order != rankcache.Descending || a.Incomplete {
		return encode.AppendHead(dst, q, a)
	}
	head := p.head.Load()
	if head == nil {
		encoded := encode.AppendHead(nil, q, a)
		head = &encoded
		p.head.Store(head)
	}
	return append(dst, *head...)
}

// entry is one encoded page, or the place where one will be.
type entry struct {
	body atomic.Pointer[body]
	mu   sync.Mutex // held by the one goroutine that encodes
}

func newEntry() *entry { return new(entry) }

// valid returns the page if it may be sent as it is.
func (e *entry) valid() *body {
	if b := e.body.Load(); b != nil && (b.fresh == nil || b.fresh()) {
		return b
	}
	return nil
}

// renew returns what encode makes and keeps it. Of the callers that come together one
// encodes; the others wait for it when there is no page yet, and get the old page when
// only profiles in it have changed.
//
// Two readers may both see no page: the second finds the first's page under the
// lock, because valid is called again there.
func (e *entry) renew(encode func() *body) *body {
	if old := e.body.Load(); old == nil {
		e.mu.Lock()
	} else if !e.mu.TryLock() {
		return old
	}
	defer e.mu.Unlock()
	if b := e.valid(); b != nil {
		return b
	}
	b := encode()
	e.body.Store(b)
	return b
}
