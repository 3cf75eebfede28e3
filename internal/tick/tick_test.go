package tick

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestEvery: the body runs after each interval until it ends the loop, and once for the ticks that passed
// while it ran.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, at := time.Now(), []string{}
		for range Every(t.Context(), time.Second) {
			if at = append(at, time.Since(begun).String()); len(at) == 1 {
				time.Sleep(2200 * time.Millisecond)
			} else if len(at) == 4 {
				break
			}
		}
		if want := []string{"1s", "3.2s", "4s", "5s"}; !slices.Equal(at, want) {
			t.Errorf("at %v, want %v", at, want)
		}
	})
}

// TestNowAndEvery: the first run is at once, also if ctx is done, the last before ctx is.
func TestNowAndEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		begun, at := time.Now(), []string{}
		for range 2 {
			for range NowAndEvery(ctx, time.Second) {
				at = append(at, time.Since(begun).String())
			}
		}
		if want := []string{"0s", "1s", "2s", "2.5s"}; !slices.Equal(at, want) {
			t.Errorf("at %v, want %v", at, want)
		}
	})
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		if !Sleep(ctx, 900*time.Millisecond) || Sleep(ctx, time.Minute) || time.Since(begun) != time.Second {
			t.Errorf("slept for %v", time.Since(begun))
		}
	})
}

func TestJitter(t *testing.T) {
	least, most := time.Hour, time.Duration(0)
	for range 1000 {
		d := Jitter(10 * time.Second)
		least, most = min(least, d), max(most, d)
	}
	if least < 9*time.Second || most > 11*time.Second || most-least < time.Second {
		t.Errorf("from %v to %v", least, most)
	}
}
