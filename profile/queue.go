package profile

// queue holds the calls that no worker has taken yet. Cache.mu guards it, but
// for ready.
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
	q.poke()
}

// take returns as many calls as fit into one batch, those of pages first; none
// when the queue is empty.
func (q *queue) take(batch int) (calls []*call) {
	for _, list := range []*[]*call{&q.pages, &q.background} {
		for len(*list) > 0 {
			k := (*list)[0]
			if !k.taken && len(k.flights) > batch {
				q.poke() // for the next worker
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

func (q *queue) poke() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}
