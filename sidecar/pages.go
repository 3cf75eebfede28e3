package sidecar

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"rankcache"
)

// Pages is what the protocols keep for one top, such as its encoded answers. It
// lives as long as the top is the newest one of its board and source, so that
// nothing in it is ever invalidated by seq.
type Pages struct {
	top  *rankcache.Top // nil: rows that Redis answered
	kept []any          // one per protocol
}

// Slot is the place of one protocol in all [Pages].
type Slot int

// Kept returns the value that the protocol's create made for p.
func (p *Pages) Kept(s Slot) any { return p.kept[s] }

// topCache holds the [Pages] of the newest tops of all boards that are read here.
// Looking one up takes two atomic loads and a map look-up, no lock.
type topCache struct {
	state atomic.Pointer[topCacheState]
	mu    sync.Mutex // held to replace state
}

// topCacheState is immutable; it is replaced as a whole.
type topCacheState struct {
	boards map[rankcache.BoardID]*boardPages
	create []func(previous any) any // by slot
}

// boardPages is the pages of one board, by source: a board may be open here and hot
// at once, and which of the two is read depends on the caller's room.
type boardPages [SourceRedis]atomic.Pointer[Pages]

func newTopCache() *topCache {
	c := &topCache{}
	c.state.Store(&topCacheState{})
	return c
}

// NewSlot gives a protocol its place in the top cache, when the protocol is
// constructed. create makes what the protocol keeps for a new top; previous is what
// it kept for the top before, nil if there is none. It may be called from several
// goroutines at once, and then all its results but one are dropped.
func (c *topCache) NewSlot(create func(previous any) any) Slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.state.Load().create
	c.state.Store(&topCacheState{create: append(old[:len(old):len(old)], create)}) // without the pages, as they lack the new slot
	return Slot(len(old))
}

// Pages returns the pages of the top that the rows of a were cut from, which is an
// answer to q, and nil when the rows were made for this query alone. Callers that
// shared one call to Redis share its pages.
func (c *topCache) Pages(q *Query, a *Answer) *Pages {
	if a.top == nil {
		return a.pages
	}
	return c.of(q.Board, a.top, a.Source)
}

// HeadPages returns the pages of the published head of the local board that answered
// s, nil for other sources.
func (c *topCache) HeadPages(q *Query, s *Standings) *Pages {
	if s.top == nil {
		return nil
	}
	return c.of(q.Board, s.top, s.Source)
}

// CopyPages returns the pages of the copy's top.
func (c *topCache) CopyPages(q *Query, kept *Copy) *Pages {
	return c.of(q.Board, kept.Top, kept.Source)
}

// of returns the pages of the board's top, which the source has.
func (c *topCache) of(board rankcache.BoardID, top *rankcache.Top, source Source) *Pages {
	state := c.state.Load()
	b := state.boards[board]
	if b == nil {
		state, b = c.add(board)
	}
	if p := b[source].Load(); p != nil && p.top == top {
		return p
	}
	return state.replace(&b[source], top)
}

// add returns the place of a board. The id may be the memory of a request.
func (c *topCache) add(board rankcache.BoardID) (*topCacheState, *boardPages) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.state.Load()
	if b := state.boards[board]; b != nil {
		return state, b
	}
	board, b := rankcache.BoardID(strings.Clone(string(board))), new(boardPages)
	next := &topCacheState{boards: make(map[rankcache.BoardID]*boardPages, len(state.boards)+1), create: state.create}
	maps.Copy(next.boards, state.boards)
	next.boards[board] = b
	c.state.Store(next)
	return next, b
}

// replace puts the pages of a new top in the place of the previous one's. A reader
// that was overtaken by a publication may put the older ones back; the next reader
// replaces them again.
func (s *topCacheState) replace(at *atomic.Pointer[Pages], top *rankcache.Top) *Pages {
	for {
		old := at.Load()
		if old != nil && old.top == top {
			return old
		}
		p := s.newPages(top, old)
		if at.CompareAndSwap(old, p) {
			return p
		}
	}
}

// shared returns pages of no top, for rows that Redis answered.
func (c *topCache) shared() *Pages { return c.state.Load().newPages(nil, nil) }

func (s *topCacheState) newPages(top *rankcache.Top, previous *Pages) *Pages {
	p := &Pages{top: top, kept: make([]any, len(s.create))}
	for i, create := range s.create {
		var old any
		if previous != nil {
			old = previous.kept[i]
		}
		p.kept[i] = create(old)
	}
	return p
}

// drop removes boards, and tops of one source, for which shown is false. Pages that a
// reader adds meanwhile to a board that is removed go with that reader.
func (c *topCache) drop(shown func(rankcache.BoardID, Source) bool) {
	gone := false
	for id, b := range c.state.Load().boards {
		empty := true
		for s := range b {
			if shown(id, Source(s)) {
				empty = false
			} else {
				b[s].Store(nil)
			}
		}
		gone = gone || empty
	}
	if gone {
		c.removeEmpty()
	}
}

func (c *topCache) removeEmpty() {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.state.Load()
	boards := maps.Clone(state.boards)
	maps.DeleteFunc(boards, func(_ rankcache.BoardID, b *boardPages) bool {
		return b[SourceLocal].Load() == nil && b[SourceHot].Load() == nil
	})
	c.state.Store(&topCacheState{boards: boards, create: state.create})
}
