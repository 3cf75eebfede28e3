package sidecar

import "testing"

// Each world says whether the i-th read that was let wait had to wait.
func TestTurn(t *testing.T) {
	const requests = 100_000
	for name, c := range map[string]struct {
		waits       func(i int) bool
		least, most float64 // share of the requests before which others go first
	}{
		"nobody else is busy":          {func(int) bool { return true }, 1.0 / 512, 1.0 / 200},
		"all are busy":                 {func(int) bool { return false }, 1, 1},
		"one in ten comes late":        {func(i int) bool { return i%10 == 0 }, 0.98, 1},
		"every other one comes late":   {func(i int) bool { return i%2 == 0 }, 0, 0.25},
		"two of three come late":       {func(i int) bool { return i%3 != 0 }, 0, 0.1},
		"busy after a long quiet time": {func(i int) bool { return i < 300 }, 0.2, 0.9},
	} {
		t.Run(name, func(t *testing.T) {
			var turn turn
			gave := 0
			for range requests {
				if turn.due() {
					turn.learn(c.waits(gave))
					gave++
				}
			}
			if share := float64(gave) / requests; share < c.least || share > c.most {
				t.Errorf("lets the others go first before %.4f of the requests, want %.4f to %.4f", share, c.least, c.most)
			}
		})
	}
}

// A quiet connection among ones that have become busy takes its turn soon.
func TestTurnLearnsAnew(t *testing.T) {
	var turn turn
	for range 10_000 {
		if turn.due() {
			turn.learn(true)
		}
	}
	missed := 0
	for !turn.due() {
		missed++
	}
	turn.learn(false)
	if missed > mostRest {
		t.Errorf("%d requests until it was tried again, want at most %d", missed, mostRest)
	}
	for i := range 100 {
		if !turn.due() {
			t.Fatalf("gave up before request %d, though all others brought something", i)
		}
		turn.learn(false)
	}
}
