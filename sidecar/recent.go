package sidecar

import (
	"sync"
	"time"

	"rankcache"
)

// recent keeps values of members of boards, at least for a time if they are not too many. It may be used concurrently.
type recent[V any] struct {
	life time.Duration
	most int // of newer

	mu         sync.Mutex
	newer, old map[memberKey]V
	turned     time.Time // when newer became the old ones
}

type memberKey struct {
	board  rankcache.BoardID
	member string
}

// get returns the value of a member. It keeps neither string.
func (r *recent[V]) get(board rankcache.BoardID, member string) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := memberKey{board, member}
	if v, ok = r.newer[key]; !ok {
		v, ok = r.old[key]
	}
	return v, ok
}

// put keeps the strings, which are not those of a request.
func (r *recent[V]) put(board rankcache.BoardID, member string, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.newer == nil || len(r.newer) >= r.most || now.Sub(r.turned) > r.life {
		r.old, r.newer, r.turned = r.newer, make(map[memberKey]V), now
	}
	r.newer[memberKey{board, member}] = v
}
