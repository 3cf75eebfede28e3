package rankcache

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// slept works for d, makes a step and returns how long that took.
func slept(p *Pace, d time.Duration) time.Duration {
	time.Sleep(d)
	began := time.Now()
	p.Step()
	return time.Since(began)
}

func TestPace(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(fewProcessors))
	synctest.Test(t, func(t *testing.T) {
		p := NewPace()
		for i, c := range []struct{ work, want time.Duration }{
			{paceOn / 2, 0}, {paceOn / 4, 0}, {paceOn / 4, paceOff}, {paceOn / 2, 0}, {paceOn, paceOff}, {time.Second, paceOff},
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
		p := NewPace()
		if got := slept(&p, time.Second); got != 0 {
			t.Errorf("a step took %v", got)
		}
	})
}

// A break that takes far longer than asked for says that nobody is waiting.
func TestPaceEndsWhenIdle(t *testing.T) {
	p := Pace{since: time.Now().Add(-time.Hour)}
	p.rested(time.Now().Add(-paceIdle - time.Second))
	if !p.since.IsZero() {
		t.Error("breaks go on")
	}
}
