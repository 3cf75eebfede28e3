package httpapi

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	head    atomic.Pointer[[]byte] // how answers about members of a local board begin
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

// renew returns what encode makes and keeps it. Of the callers that come together one encodes; the others wait for it
// when there is no page yet, and get the old page when only profiles in it have changed.
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

// maxReuse is how long profiles go from page to page before the profile cache is asked, which counts their use.
const maxReuse = time.Second

// previousPages has for each board the profiles of the page that was encoded last, which the next top's page reuses. A
// board that is written to has a hundred tops a second, with nearly always the same members. Looking up and copying 50
// profiles, which are in no processor's cache, took 100 of the 125 µs in which such a page was encoded (in a server
// under load), and with one core every request waited for it.
type previousPages struct{ boards sync.Map } // *previousPage by board

type previousPage struct {
	entries  []rankcache.Entry
	profiles [][]byte // of the entries, as slices of the encoded page
	fresh    func() bool
	asked    time.Time // when the profile cache was
}

// joinRows returns the profiles of a page's rows: the previous page's if its members are the same, else the cache's.
func (p *previousPages) joinRows(board rankcache.BoardID, profiles sidecar.Profiles, entries []rankcache.Entry) encode.Joined {
	if v, ok := p.boards.Load(board); ok {
		if old := v.(*previousPage); time.Since(old.asked) < maxReuse {
			if j, ok := old.join(entries); ok {
				if len(entries) >= len(old.entries) { // a top 3 does not replace the profiles of the top 50
					j.Offsets = make([]int, len(entries))
				}
				return j
			}
		}
	}
	j := encode.Join(context.Background(), profiles, entries)
	j.Offsets = make([]int, len(entries))
	return j
}

// drop forgets pages that are too old to be reused.
func (p *previousPages) drop() {
	p.boards.Range(func(board, v any) bool {
		if time.Since(v.(*previousPage).asked) >= maxReuse {
			p.boards.Delete(board)
		}
		return true
	})
}

// join returns false if one of the rows is not in the page, or has another profile now.
func (p *previousPage) join(entries []rankcache.Entry) (encode.Joined, bool) {
	j := encode.Joined{Profiles: make([][]byte, len(entries)), Fresh: p.fresh, Asked: p.asked}
	for i := range entries {
		at := p.find(entries[i].Member, i)
		if at < 0 {
			return encode.Joined{}, false
		}
		j.Profiles[i] = p.profiles[at]
	}
	return j, p.fresh()
}

// find returns member's row, -1: none, searching from row i outwards: few members move far between two tops.
func (p *previousPage) find(member string, i int) int {
	for d := range max(i+1, len(p.entries)-i) {
		if up := i - d; up >= 0 && up < len(p.entries) && p.entries[up].Member == member {
			return up
		}
		if down := i + d; down < len(p.entries) && p.entries[down].Member == member {
			return down
		}
	}
	return -1
}

// keep leaves the profiles of an encoded page to the next one, unless some are still missing.
func (p *previousPages) keep(board rankcache.BoardID, entries []rankcache.Entry, j *encode.Joined, b *body) {
	if j.Offsets == nil || j.Missing > 0 || j.Fresh == nil {
		return
	}
	page := &previousPage{entries: entries, profiles: j.Profiles, fresh: j.Fresh, asked: j.Asked}
	for i, profile := range page.profiles {
		if profile != nil { // a slice of the new page, so that the one before can be freed
			from, to := j.Offsets[i], j.Offsets[i]+len(profile)
			page.profiles[i] = b.data[from:to:to]
		}
	}
	p.boards.Store(rankcache.BoardID(strings.Clone(string(board))), page)
}
