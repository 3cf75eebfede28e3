package roomsync

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/rooms"
)

const (
	MaxFound = 1000 // the most boards that are kept because they match a pattern and are read
	// foundLasts is for how long one is kept after it was last read, and usedGrain how exactly that is known.
	foundLasts, usedGrain = 10 * time.Minute, 10 * time.Second
)

// tooMany is why further ones are not kept.
var tooMany = fmt.Sprintf("%d boards that match a pattern are read, and no more are kept: Redis answers the others; name fewer boards by patterns", MaxFound)

// found are the boards that match a pattern with a mode and are read. Their tiers are resolved at the next poll.
type found struct {
	used atomic.Pointer[map[rankcache.BoardID]*atomic.Int64] // Unix ns of the last read; never changed, but replaced
	mu   sync.Mutex
	more map[rankcache.BoardID]bool // since the last poll
}

// Use tells that a board is read. It keeps no reference to the id's memory.
func (f *Follower) Use(board rankcache.BoardID) {
	tiers := f.tiers.Load()
	if !tiers.Finds() {
		return
	}
	now := time.Now().UnixNano()
	if at := (*f.found.used.Load())[board]; at != nil {
		if now-at.Load() > int64(usedGrain) {
			at.Store(now)
		}
		return
	}
	if mode, ok := tiers.Found(board); ok && mode != rooms.ModeBlocked && f.cfg.CheckBoard(board) == nil {
		f.found.add(board)
	}
}

func (f *found) add(board rankcache.BoardID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.more) <= MaxFound {
		f.more[rankcache.BoardID(strings.Clone(string(board)))] = true
	}
}

// take makes those found since last time used, and forgets unread ones. refused has no room, "": none.
func (f *found) take(now time.Time) (changed bool, refused rankcache.BoardID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	used := maps.Clone(*f.used.Load())
	maps.DeleteFunc(used, func(_ rankcache.BoardID, at *atomic.Int64) bool { return now.UnixNano()-at.Load() > int64(foundLasts) })
	changed = len(used) < len(*f.used.Load())
	for b := range f.more {
		if len(used) == MaxFound {
			refused = b
			break
		}
		used[b], changed = new(atomic.Int64), true
		used[b].Store(now.UnixNano())
	}
	clear(f.more)
	if changed {
		f.used.Store(&used)
	}
	return changed, refused
}

// lookAtFound takes what was found since the last poll. The first board without room is told.
func (f *Follower) lookAtFound() (changed bool) {
	changed, refused := f.found.take(time.Now())
	why := ""
	if refused != "" {
		why = tooMany
	}
	if before := f.Status().Found; refused != "" && before.Error == "" {
		f.cfg.Log.Error("boards that match a pattern are not kept", "err", tooMany, "such_as", refused)
	}
	f.updateStatus(func(s *Status) { s.Found = FoundStatus{len(*f.found.used.Load()), why} })
	return changed
}
