package profile

import "time"

// flight is the one load of a member, however many pages wait for it. A flight
// that is done leaves loader.flights, or stays there for a while as a recent
// result when its value is not in the store: refused by the cache, so that the
// next pages need no load, or failed, so that they do not retry at once.
type flight struct {
	member  string
	key     uint64
	version uint32
	call    *call
	dropped bool // guarded by loader.mu: its value must not be kept

	// Set before the call is done, not changed afterwards.
	value    entry         // the zero entry when the load failed
	revision uint32        // of the member's group when value was stored
	expiry   time.Duration // of a recent result
	bytes    int           // of a recent result
}

// call is the flights that are loaded together, at most a batch.
type call struct {
	flights []*flight
	done    chan struct{} // closed when all of them are done
	// waitedSince is when the first page began to wait: pages that come later do not
	// wait a whole deadline again for a service that hangs. Guarded by loader.mu.
	waitedSince time.Duration
	// background calls come after those of pages; queued ones are counted in the
	// queue; taken ones are with a worker. Guarded by loader.mu.
	background, queued, taken bool
}

func (k *call) isDone() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// queue holds the calls that no worker has taken yet. loader.mu guards all but
// ready.
type queue struct {
	pages, background []*call
	members           int           // waiting in both
	ready             chan struct{} // holds a token when there may be something to take
}

func newQueue() queue { return queue{ready: make(chan struct{}, 1)} }

// push queues a call, or moves one from the background to the pages.
func (q *queue) push(k *call) {
	list := &q.pages
	if k.background {
		list = &q.background
	}
	*list = append(*list, k)
	if !k.queued {
		k.queued = true
		q.members += len(k.flights)
	}
	q.wake()
}

// take returns as many calls as fit into one batch, those of pages first; none
// when the queue is empty.
func (q *queue) take(batch int) (calls []*call) {
	for _, list := range []*[]*call{&q.pages, &q.background} {
		for len(*list) > 0 {
			k := (*list)[0]
			if !k.taken && len(k.flights) > batch {
				q.wake() // another worker
				return calls
			}
			(*list)[0], *list = nil, (*list)[1:]
			if !k.taken {
				k.taken = true
				calls = append(calls, k)
				batch -= len(k.flights)
				q.members -= len(k.flights)
			}
		}
	}
	return calls
}

func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}
