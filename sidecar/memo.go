package sidecar

import (
	"sync"
	"sync/atomic"

	"rankcache"
)

// maxKept is the most encoded pages kept for one top: callers who ask for every
// possible range must not fill the memory.
const maxKept = 16

// pageKey tells the pages of one top apart.
type pageKey struct {
	start, limit int
	order        rankcache.Direction
	profiles     bool
}

// memo holds the encoded pages of one top, in its Memo. It lives as long as the
// top, so nothing ever has to be invalidated by seq.
type memo struct {
	// pages is replaced, never changed, so that readers need no lock.
	pages atomic.Pointer[[]*leaf]
	mu    sync.Mutex // to replace pages
	next  int        // whose place a page takes when all are taken
	// head is how answers about members of a local board begin.
	head atomic.Pointer[[]byte]
}

// appendHeadOf is appendHead for an answer from a local board, kept as long as
// its top is: formatting a time and four numbers takes as long as finding a member.
func appendHeadOf(dst []byte, q Query, s *Standings) []byte {
	if s.top == nil || q.Order != rankcache.Descending || s.Seq != s.top.Seq || !s.At.Equal(s.top.PublishedAt) {
		return appendHead(dst, q, s.Source, s.Stamp) // or a publication came in between
	}
	m := memoOf(&s.top.Memo)
	head := m.head.Load()
	if head == nil {
		made := appendHead(nil, q, s.Source, s.Stamp)
		head = &made
		m.head.Store(head)
	}
	return append(dst, *head...)
}

// leaf is one encoded page, or the place where one will be.
type leaf struct {
	key  pageKey
	body atomic.Pointer[body]
	mu   sync.Mutex // held by the one goroutine that encodes; taken after memo.mu was let go
}

// memoOf returns the memo kept in v, a new one at the first call.
func memoOf(v *atomic.Value) *memo {
	if m, ok := v.Load().(*memo); ok {
		return m
	}
	v.CompareAndSwap(nil, new(memo))
	return v.Load().(*memo)
}

// leaf returns the place of the page named by key.
func (m *memo) leaf(key pageKey) *leaf {
	if l := m.find(key); l != nil {
		return l
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.find(key); l != nil {
		return l
	}
	l := &leaf{key: key}
	m.add(l)
	return l
}

func (m *memo) find(key pageKey) *leaf {
	if pages := m.pages.Load(); pages != nil {
		for _, l := range *pages {
			if l.key == key {
				return l
			}
		}
	}
	return nil
}

func (m *memo) add(l *leaf) {
	var pages []*leaf
	if old := m.pages.Load(); old != nil {
		pages = append(pages, *old...)
	}
	if len(pages) < maxKept {
		pages = append(pages, l)
	} else {
		pages[m.next] = l
		m.next = (m.next + 1) % maxKept
	}
	m.pages.Store(&pages)
}

// kept returns the page if it may be written as it is.
func (l *leaf) kept() *body {
	if b := l.body.Load(); b != nil && (b.fresh == nil || b.fresh()) {
		return b
	}
	return nil
}

// renew returns what encode makes and keeps it. Of those who come together one
// encodes; the others wait for it when there is no page yet, and are given the
// previous one when only profiles in it have changed.
//
// Two readers may both see no page: the second finds the first's page under the
// lock, because kept is asked again there.
func (l *leaf) renew(encode func() *body) *body {
	if old := l.body.Load(); old == nil {
		l.mu.Lock()
	} else if !l.mu.TryLock() {
		return old
	}
	defer l.mu.Unlock()
	if b := l.kept(); b != nil {
		return b
	}
	b := encode()
	l.body.Store(b)
	return b
}
