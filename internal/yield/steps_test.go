package yield_test

import (
	"testing"

	"rankcache/internal/yield"
)

func TestStepsYieldOnceInEvery(t *testing.T) {
	calls := 0
	s := yield.Every(10, func() { calls++ })
	for _, c := range []struct{ done, want int }{{9, 0}, {1, 1}, {9, 1}, {5, 2}, {30, 3}} {
		if s.Done(c.done); calls != c.want {
			t.Errorf("after %d more steps it has yielded %d times, want %d", c.done, calls, c.want)
		}
	}
	s.Done(9)
	s.Now()
	if s.Done(9); calls != 4 {
		t.Errorf("yielded %d times: the steps begin anew after a yield", calls)
	}
	for _, never := range []yield.Steps{{}, yield.Every(1, nil)} {
		never.Done(1)
		never.Now()
	}
}
