package localboard

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSeenInAnyOrder(t *testing.T) {
	const n = 5 * seenPage
	for _, window := range []int{1, 100, n} {
		var s seen
		for _, seq := range shuffled(n, window) {
			if !s.add(seq) || s.add(seq) {
				t.Fatalf("window %d: seq %d did not count exactly once", window, seq)
			}
		}
		if s.contiguous != n || s.highest != n || len(s.ahead) != 0 {
			t.Errorf("window %d: contiguous %d, highest %d, %d pages; want %d and none", window, s.contiguous, s.highest, len(s.ahead), n)
		}
	}
}

// shuffled returns 1 to n, each at most window places from where it belongs.
func shuffled(n, window int) []uint64 {
	r, seqs := rand.New(rand.NewPCG(1, uint64(window))), make([]uint64, n)
	for i := range seqs {
		seqs[i] = uint64(i + 1)
	}
	for from := 0; from < n; from += window {
		part := seqs[from:min(n, from+window)]
		r.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	}
	return seqs
}

// TestSeenStopsAtEachHole has one hole, at every place around a page's ends.
func TestSeenStopsAtEachHole(t *testing.T) {
	for hole := uint64(2*seenPage - 66); hole < 2*seenPage+66; hole++ {
		var s seen
		for seq := uint64(3 * seenPage); seq > 0; seq-- {
			if seq != hole {
				s.add(seq)
			}
		}
		if s.contiguous != hole-1 {
			t.Fatalf("hole at %d: contiguous %d", hole, s.contiguous)
		}
		if s.add(hole); s.contiguous != 3*seenPage || len(s.ahead) > 1 {
			t.Fatalf("hole at %d filled: contiguous %d, %d pages", hole, s.contiguous, len(s.ahead))
		}
	}
}

// TestSeenPoison wants a seq far ahead to cost one page, and no more work.
func TestSeenPoison(t *testing.T) {
	var s seen
	for _, seq := range []uint64{1 << 60, math.MaxUint64, 2, 1, 3} {
		if !s.add(seq) || s.add(seq) {
			t.Errorf("seq %d did not count exactly once", seq)
		}
	}
	if s.contiguous != 3 || s.highest != math.MaxUint64 || s.bytes() > 4*seenPage/8 {
		t.Errorf("contiguous %d, highest %d, %d bytes", s.contiguous, s.highest, s.bytes())
	}
	if s.settle(math.MaxUint64); s.contiguous != math.MaxUint64 || len(s.ahead) != 0 || s.add(5) {
		t.Errorf("settled at the end: contiguous %d, %d pages", s.contiguous, len(s.ahead))
	}
}

func TestSeenSettle(t *testing.T) {
	var s seen
	for _, seq := range []uint64{1, 5, 6, seenPage + 7, seenPage + 8} {
		s.add(seq)
	}
	for _, c := range []struct{ settle, contiguous uint64 }{
		{0, 1}, {4, 6}, {5, 6}, {seenPage + 6, seenPage + 8}, {9 * seenPage, 9 * seenPage},
	} {
		if s.settle(c.settle); s.contiguous != c.contiguous {
			t.Errorf("settled to %d: contiguous %d, want %d", c.settle, s.contiguous, c.contiguous)
		}
	}
	if len(s.ahead) != 0 {
		t.Errorf("%d pages are left behind", len(s.ahead))
	}
}

// TestSeenFullPages wants a long run ahead of a hole to cost little.
func TestSeenFullPages(t *testing.T) {
	var s seen
	for seq := uint64(2); seq < 200*seenPage; seq++ {
		s.add(seq)
	}
	if got := s.bytes(); got > 200*64+2*seenPage/8 {
		t.Errorf("%d bytes for 200 pages of which all but the ends are full", got)
	}
	if s.add(7*seenPage) || !s.add(1) || s.contiguous != 200*seenPage-1 || len(s.ahead) > 1 {
		t.Errorf("contiguous %d, %d pages", s.contiguous, len(s.ahead))
	}
}

func TestOrders(t *testing.T) {
	o := newOrders()
	for _, no := range []string{"", "a", "b", "ab"} {
		if !o.add(no) || o.add(no) {
			t.Errorf("order %q did not count exactly once", no)
		}
	}
}
