package conn

// backoff decides when a connection yields to others, between an answer and its next
// request.
//
// Go reads at once. A read that returns EAGAIN costs a system call, a park and a wake-up:
// about 10 % of a request. While many connections are busy, one that yields first finds
// its next request in the socket. While few are, yielding only costs: the scheduler runs,
// and may wake another thread that looks for work. Which it is shows in whether the read
// after a yield had to wait. The zero backoff is ready for use by one goroutine.
type backoff struct {
	credit int // earned by earlier yields; below 1, reads come before the next yield
	reads  int // until the next yield
	next   int // the same after the next yield, should that one fail
}

// A yield that fails costs about twice the time that a successful one saves: with 64 busy
// connections 12 % of a request, with few 20 % (rankcache bench read). When all fail, one
// read in 256 yields, which costs nothing measurable.
const (
	maxCredit  = 16
	creditLost = 2
	firstReads = 8
	maxReads   = 256
)

// due reports whether to yield before this read. If so, learn is called after it.
func (b *backoff) due() bool {
	if b.reads == 0 {
		return true
	}
	b.reads--
	return false
}

// learn takes note of whether the read after a yield had to wait all the same.
func (b *backoff) learn(waited bool) {
	if !waited {
		b.credit, b.next = min(b.credit+1, maxCredit), b.next/2
		return
	}
	if b.credit -= creditLost; b.credit < 1 {
		b.credit, b.reads = 0, max(b.next, firstReads)
		b.next = min(2*b.reads, maxReads)
	}
}
