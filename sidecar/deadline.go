package sidecar

import (
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// timeLimits is shared by the connections of one server. Time-outs may come
// early, by at most a sixth of the shortest of them.
type timeLimits struct {
	read, write, idle time.Duration
	began             time.Time              // where the coarse time begins
	now               atomic.Int64           // coarse time, in nanoseconds
	dated             atomic.Pointer[[]byte] // the same as a Date field says it
}

// slack is how old a deadline may be and still serve for one set now.
func (l *timeLimits) slack() time.Duration { return min(l.read, l.write, l.idle) / 9 }

// mostStale is how old the coarse time may be: it is also that of Date fields.
const mostStale = time.Second / 2

// tick moves the coarse time until stop is closed, and calls each after that. Several
// may do so.
func (l *timeLimits) tick(stop <-chan struct{}, each func()) {
	ticker := time.NewTicker(min(l.slack()/2, mostStale))
	defer ticker.Stop()
	for {
		l.move(time.Now())
		each()
		select {
		case <-ticker.C:
		case <-stop:
			return
		}
	}
}

// move sets the coarse time.
func (l *timeLimits) move(now time.Time) {
	date := fasthttp.AppendHTTPDate(nil, now)
	l.dated.Store(&date)
	l.now.Store(int64(now.Sub(l.began)))
}

// date returns the coarse time as a Date field says it; it is not to be changed.
func (l *timeLimits) date() []byte { return *l.dated.Load() }

// due reports whether a deadline set at the coarse time *set is too old, and
// takes it that it is set now.
func (l *timeLimits) due(set *int64) bool {
	now := l.now.Load()
	if *set != 0 && now-*set < int64(l.slack()) {
		return false
	}
	*set = max(now, 1)
	return true
}
