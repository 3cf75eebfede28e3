package httpapi

import (
	"sync"
	"sync/atomic"

	"rankcache"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/sidecar/internal/apijson"
)

// maxPages is how many encoded pages are kept for one top: callers that request every
// possible range must not fill the memory.
const maxPages = 16

// pageKey tells the pages of one top apart.
type pageKey struct {
	start, limit int
	order        rankcache.Direction
	profiles     bool
	form         rankcache.ScoreForm // as in [sidecar.Answer]
	trend        bool
	class        *rooms.Class // that the page tells of, nil: of none
	state        periodState  // of the class's period, as in the page
}

// pages holds the encoded pages of one top. It lives as long as the top is the newest.
type pages struct {
	// entries is replaced, never changed, so that readers need no lock.
	entries atomic.Pointer[[]*entry]
	mu      sync.Mutex // held to replace entries
	next    int        // index of the entry that is replaced when there are maxPages
	// head is how answers about members of a local board begin.
	head atomic.Pointer[[]byte]
	// previous is shared by all tops of a board that follow each other.
	previous *atomic.Pointer[previousPage]
}

// newPages returns the empty pages of a top, which follows the one of the old pages.
func newPages(old any) any {
	if old, ok := old.(*pages); ok {
		return &pages{previous: old.previous}
	}
	return &pages{previous: new(atomic.Pointer[previousPage])}
}

// pageCache is the data port's slot in the reader's top cache: the encoded pages of each
// newest top.
type pageCache struct {
	reader *sidecar.Reader
	slot   sidecar.Slot
}

func newPageCache(r *sidecar.Reader) pageCache { return pageCache{r, r.NewSlot(newPages)} }

// pagesOf returns the pages that the rows of a belong to, nil if there are none.
func (s *pageCache) pagesOf(q *sidecar.Query, a *sidecar.Answer) *pages {
	if p := s.reader.Pages(q, a); p != nil {
		return p.Kept(s.slot).(*pages)
	}
	return nil
}

// appendHead begins an answer about members. Of a local board the bytes are kept:
// formatting a time and four numbers takes as long as finding a member.
func (s *pageCache) appendHead(dst []byte, q *sidecar.Query, found *sidecar.Standings) []byte {
	if q.Order != rankcache.Descending {
		return apijson.AppendHead(dst, *q, found.Source, found.Stamp)
	}
	p := s.reader.HeadPages(q, found)
	if p == nil {
		return apijson.AppendHead(dst, *q, found.Source, found.Stamp)
	}
	kept := &p.Kept(s.slot).(*pages).head
	head := kept.Load()
	if head == nil {
		encoded := apijson.AppendHead(nil, *q, found.Source, found.Stamp)
		head = &encoded
		kept.Store(head)
	}
	return append(dst, *head...)
}

// entry is one encoded page, or the place where one will be.
type entry struct {
	key  pageKey
	body atomic.Pointer[body]
	mu   sync.Mutex // held by the one goroutine that encodes; taken after pages.mu was released
}

// entry returns the entry of the page named by key, a new one at the first call.
func (p *pages) entry(key *pageKey) *entry {
	if e := p.find(key); e != nil {
		return e
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.find(key); e != nil {
		return e
	}
	e := &entry{key: *key}
	p.add(e)
	return e
}

func (p *pages) find(key *pageKey) *entry {
	if entries := p.entries.Load(); entries != nil {
		for _, e := range *entries {
			if e.key == *key {
				return e
			}
		}
	}
	return nil
}

func (p *pages) add(e *entry) {
	var entries []*entry
	if old := p.entries.Load(); old != nil {
		entries = append(entries, *old...)
	}
	if len(entries) < maxPages {
		entries = append(entries, e)
	} else {
		entries[p.next] = e
		p.next = (p.next + 1) % maxPages
	}
	p.entries.Store(&entries)
}

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
