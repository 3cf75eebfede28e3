package localboard

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSeqSetInAnyOrder(t *testing.T) {
	const n = 5 * seqsPerPage
	for _, window := range []int{1, 100, n} {
		var s seqSet
		for _, seq := range shuffled(n, window) {
			if !s.add(seq) || s.add(seq) {
				t.Fatalf("window %d: seq %d did not count exactly once", window, seq)
			}
		}
		if s.contiguous != n || s.highest != n || len(s.pages) != 0 {
			t.Errorf("window %d: contiguous %d, highest %d, %d pages; want %d and none", window, s.contiguous, s.highest, len(s.pages), n)
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

// TestSeqSetStopsAtEachHole has one hole, at every place around a page's ends.
func TestSeqSetStopsAtEachHole(t *testing.T) {
	for hole := uint64(2*seqsPerPage - 66); hole < 2*seqsPerPage+66; hole++ {
		var s seqSet
		for seq := uint64(3 * seqsPerPage); seq > 0; seq-- {
			if seq != hole {
				s.add(seq)
			}
		}
		if s.contiguous != hole-1 {
			t.Fatalf("hole at %d: contiguous %d", hole, s.contiguous)
		}
		if s.add(hole); s.contiguous != 3*seqsPerPage || len(s.pages) > 1 {
			t.Fatalf("hole at %d filled: contiguous %d, %d pages", hole, s.contiguous, len(s.pages))
		}
	}
}

// TestSeqSetFarAhead: a seq far ahead costs one page, and no more work.
func TestSeqSetFarAhead(t *testing.T) {
	var s seqSet
	for _, seq := range []uint64{1 << 60, math.MaxUint64, 2, 1, 3} {
		if !s.add(seq) || s.add(seq) {
			t.Errorf("seq %d did not count exactly once", seq)
		}
	}
	if s.contiguous != 3 || s.highest != math.MaxUint64 || s.bytes() > 4*seqsPerPage/8 {
		t.Errorf("contiguous %d, highest %d, %d bytes", s.contiguous, s.highest, s.bytes())
	}
	if s.acceptTo(math.MaxUint64); s.contiguous != math.MaxUint64 || len(s.pages) != 0 || s.add(5) {
		t.Errorf("accepted to the end: contiguous %d, %d pages", s.contiguous, len(s.pages))
	}
}

func TestSeqSetAcceptTo(t *testing.T) {
	var s seqSet
	for _, seq := range []uint64{1, 5, 6, seqsPerPage + 7, seqsPerPage + 8} {
		s.add(seq)
	}
	for _, c := range []struct{ to, contiguous uint64 }{
		{0, 1}, {4, 6}, {5, 6}, {seqsPerPage + 6, seqsPerPage + 8}, {9 * seqsPerPage, 9 * seqsPerPage},
	} {
		if s.acceptTo(c.to); s.contiguous != c.contiguous {
			t.Errorf("accepted to %d: contiguous %d, want %d", c.to, s.contiguous, c.contiguous)
		}
	}
	if len(s.pages) != 0 {
		t.Errorf("%d pages are left behind", len(s.pages))
	}
}

// TestSeqSetFullPages: a long run ahead of a hole costs little.
func TestSeqSetFullPages(t *testing.T) {
	var s seqSet
	for seq := uint64(2); seq < 200*seqsPerPage; seq++ {
		s.add(seq)
	}
	if got := s.bytes(); got > 200*64+2*seqsPerPage/8 {
		t.Errorf("%d bytes for 200 pages of which all but the ends are full", got)
	}
	if s.add(7*seqsPerPage) || !s.add(1) || s.contiguous != 200*seqsPerPage-1 || len(s.pages) > 1 {
		t.Errorf("contiguous %d, %d pages", s.contiguous, len(s.pages))
	}
}

func TestOrderIDs(t *testing.T) {
	o := newOrderIDs()
	for _, id := range []string{"", "a", "b", "ab"} {
		if !o.add(id) || o.add(id) {
			t.Errorf("order id %q did not count exactly once", id)
		}
	}
}
