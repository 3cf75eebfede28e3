package rankcache

import (
	"sync"
	"sync/atomic"
)

// Kept is what is kept for one state of a board while it is the newest, such as encoded pages: nothing in it is ever
// invalidated. Zero is empty. It may be used concurrently and must not be copied.
type Kept struct{ newest atomic.Pointer[keptValue] }

type keptValue struct {
	owner, value any
	older        *keptValue
}

// By returns what is kept for the owner, made at the first call; of several results at once all but one are dropped.
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

const MaxFew = 16 // how many values a [Few] has, which bounds its memory

// Few keeps the last values that were made, by keys. Zero is empty. Concurrent use is safe, finding takes no lock.
type Few[K comparable, V any] struct {
	all  atomic.Pointer[[]keyed[K, V]] // replaced, never changed
	mu   sync.Mutex                    // held to make a value
	next int                           // which is replaced when there are MaxFew
}

type keyed[K comparable, V any] struct {
	key   K
	value V
}

// Get returns the value of the key, which make makes at the first call: callers that come together wait for it.
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
