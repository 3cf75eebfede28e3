package rankcache

import (
	"sync"
	"sync/atomic"
)

// Kept is what is kept for one state of a board as long as that is the newest, such as encoded
// pages: it goes with the state, so that nothing in it is ever invalidated. The zero value is
// empty. It may be used concurrently and must not be copied.
type Kept struct{ newest atomic.Pointer[keptValue] }

type keptValue struct {
	owner, value any
	older        *keptValue
}

// By returns what is kept for the owner. make makes it at the first call; where several
// goroutines come first, all results but one are dropped.
func (k *Kept) By(owner any, make func() any) any {
	for {
		newest := k.newest.Load()
		for v := newest; v != nil; v = v.older {
			if v.owner == owner {
				return v.value
			}
		}
		v := &keptValue{owner, make(), newest}
		if k.newest.CompareAndSwap(newest, v) {
			return v.value
		}
	}
}

// MaxFew is how many values a [Few] has: callers that ask for everything that can be made of a
// state must not fill the memory.
const MaxFew = 16

// Few keeps the last values that were made, by their keys. The zero value is empty. It may be
// used concurrently; to find a value takes no lock.
type Few[K comparable, V any] struct {
	all  atomic.Pointer[[]keyed[K, V]] // replaced, never changed
	mu   sync.Mutex                    // held to make a value
	next int                           // which is replaced when there are MaxFew
}

type keyed[K comparable, V any] struct {
	key   K
	value V
}

// Get returns the value of the key, which make makes at the first call: callers that come
// together wait for it.
func (f *Few[K, V]) Get(key *K, make func() V) V {
	if v := f.find(key); v != nil {
		return v.value
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if v := f.find(key); v != nil {
		return v.value
	}
	v := keyed[K, V]{*key, make()}
	var all []keyed[K, V]
	if old := f.all.Load(); old != nil {
		all = append(all, *old...)
	}
	if len(all) < MaxFew {
		all = append(all, v)
	} else {
		all[f.next], f.next = v, (f.next+1)%MaxFew
	}
	f.all.Store(&all)
	return v.value
}

func (f *Few[K, V]) find(key *K) *keyed[K, V] {
	if all := f.all.Load(); all != nil {
		for i := range *all {
			if v := &(*all)[i]; v.key == *key {
				return v
			}
		}
	}
	return nil
}
