package sidecar

// turn decides when a connection lets the others go first, between an answer and
// its next request.
//
// Go reads at once and waits when nothing has come: a call in vain, a wait in the
// poller and being woken again, which is a tenth of what an answer costs. While
// many connections are busy, one that has let them go first finds its request
// there instead. While few are, that only costs: the scheduler is gone through,
// and another thread may be woken to look for work. Which it is shows in whether
// the read then had to wait, so it is learned from that. The zero turn is ready
// for use by one goroutine.
type turn struct {
	luck int // what earlier turns earned; below 1, the next is some requests away
	rest int // requests until then
	next int // the rest after that one, should it bring nothing
}

// A turn that fails costs about twice what one brings that does not: at 64 busy
// connections 12 % of an answer, and with few 20 (rankcache bench read). One in 256
// requests, which is what is tried when all fail, costs nothing to speak of.
const (
	mostLuck  = 16
	luckLost  = 2
	firstRest = 8
	mostRest  = 256
)

// due reports whether to let the others go first before this request is read. If
// so, learn is to be told what came of it.
func (t *turn) due() bool {
	if t.rest == 0 {
		return true
	}
	t.rest--
	return false
}

// learn is told whether the read had to wait all the same.
func (t *turn) learn(waited bool) {
	if !waited {
		t.luck, t.next = min(t.luck+1, mostLuck), t.next/2
		return
	}
	if t.luck -= luckLost; t.luck < 1 {
		t.luck, t.rest = 0, max(t.next, firstRest)
		t.next = min(2*t.rest, mostRest)
	}
}
