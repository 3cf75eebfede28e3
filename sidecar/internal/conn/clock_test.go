package conn

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestClockTicksOnTheSecond: a date made by it is never late.
func TestClockTicksOnTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(300 * time.Millisecond) // it starts between two seconds
		var shown atomic.Int64             // a second
		clock := NewClock(Limits{Read: 5 * time.Second, Write: 5 * time.Second, Idle: time.Minute}, func(now time.Time) { shown.Store(now.Unix()) })
		stop := make(chan struct{})
		go clock.Run(stop)
		for range 100 {
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
			if now := time.Now(); shown.Load() != now.Unix() {
				t.Errorf("shows %d at %v, %d", shown.Load(), now, now.Unix())
			}
		}
		close(stop)
	})
}
