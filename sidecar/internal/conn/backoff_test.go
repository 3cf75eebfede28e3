package conn

import "testing"

// TestBackoff: waits reports whether the read after the i-th yield has to wait.
func TestBackoff(t *testing.T) {
	const requests = 100_000
	for name, c := range map[string]struct {
		waits       func(i int) bool
		least, most float64 // share of the reads that yield first
	}{
		"no other is busy":             {func(int) bool { return true }, 1.0 / 512, 1.0 / 200},
		"all are busy":                 {func(int) bool { return false }, 1, 1},
		"one in ten comes late":        {func(i int) bool { return i%10 == 0 }, 0.98, 1},
		"every other one comes late":   {func(i int) bool { return i%2 == 0 }, 0, 0.25},
		"two of three come late":       {func(i int) bool { return i%3 != 0 }, 0, 0.1},
		"busy after a long quiet time": {func(i int) bool { return i < 300 }, 0.2, 0.9},
	} {
		t.Run(name, func(t *testing.T) {
			var b backoff
			yields := 0
			for range requests {
				if b.due() {
					b.learn(c.waits(yields))
					yields++
				}
			}
			if share := float64(yields) / requests; share < c.least || share > c.most {
				t.Errorf("%.4f of the reads yield first, want %.4f to %.4f", share, c.least, c.most)
			}
		})
	}
}

// TestBackoffEnds: a connection among ones that have become busy yields again soon.
func TestBackoffEnds(t *testing.T) {
	var b backoff
	for range 10_000 {
		if b.due() {
			b.learn(true)
		}
	}
	reads := 0
	for !b.due() {
		reads++
	}
	b.learn(false)
	if reads > maxReads {
		t.Errorf("%d reads until the next yield, want at most %d", reads, maxReads)
	}
	for i := range 100 {
		if !b.due() {
			t.Fatalf("no yield before read %d, though none before it had to wait", i)
		}
		b.learn(false)
	}
}
