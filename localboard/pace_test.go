package localboard

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// slept works for d, makes a step and returns how long that took.
func slept(p *pace, d time.Duration) time.Duration {
	time.Sleep(d)
	began := time.Now()
	p.step()
	return time.Since(began)
}

func TestPace(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(fewProcessors))
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		for i, c := range []struct{ work, want time.Duration }{
			{paceOn / 2, 0}, {paceOn / 4, 0}, {paceOn / 4, paceOff}, {paceOn / 2, 0}, {paceOn, paceOff}, {time.Second, paceOff},
			{paceOn, paceOff}, {time.Second, 0}, // no more than paceMost
		} {
			if got := slept(&p, c.work); got != c.want {
				t.Errorf("step %d took %v, want %v", i, got, c.want)
			}
		}
	})
}

// With processors to spare requests need not be let in.
func TestPaceWithManyProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(fewProcessors + 1))
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		if got := slept(&p, time.Second); got != 0 {
			t.Errorf("a step took %v", got)
		}
	})
}

// A break that takes far longer than asked for says that nobody is waiting.
func TestPaceEndsWhenIdle(t *testing.T) {
	p := pace{left: paceMost}
	p.rested(time.Now().Add(-paceIdle - time.Second))
	if p.left != 0 {
		t.Error("breaks go on")
	}
}
