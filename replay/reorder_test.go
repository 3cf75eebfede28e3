package replay

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"rankcache/wire"
)

// strictBoard takes updates as a board does, and fails when one comes ahead of another.
type strictBoard struct {
	t          *testing.T
	contiguous uint64
	applied    map[uint64]string
}

func (s *strictBoard) apply(us []wire.Update) {
	for _, u := range us {
		if u.Seq > s.contiguous+1 {
			s.t.Fatalf("update %d is applied after %d", u.Seq, s.contiguous)
		}
		s.contiguous = max(s.contiguous, u.Seq)
		s.applied[u.Seq] = u.Member
	}
}

// Updates that come in any order, with repeats, are all applied in the order of
// their seqs, and the strings of those that waited are not the batch's.
func TestReorderBufferOrders(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		const n = 2000
		buffer, board := reorderBuffer{}, strictBoard{t: t, applied: map[uint64]string{}}
		for from := 0; from < n; from += 100 {
			seqs := rng.Perm(100)
			for len(seqs) > 0 {
				var batch []wire.Update
				for range min(len(seqs), 1+rng.IntN(20)) {
					seq := uint64(from + seqs[0] + 1)
					batch, seqs = append(batch, wire.Update{Seq: seq, Member: fmt.Sprint(seq)}), seqs[1:]
					if rng.IntN(5) == 0 {
						batch = append(batch, batch[rng.IntN(len(batch))])
					}
				}
				board.apply(buffer.Add(batch, board.contiguous))
			}
		}
		if len(buffer.updates) != 0 || board.contiguous != n || len(board.applied) != n {
			t.Fatalf("seed %d: %d buffered, up to %d, %d applied", seed, len(buffer.updates), board.contiguous, len(board.applied))
		}
		for seq, member := range board.applied {
			if member != fmt.Sprint(seq) {
				t.Fatalf("update %d is of %s", seq, member)
			}
		}
	}
}

// The buffer is bounded; beyond that updates are applied as they come, none is lost.
func TestReorderBufferIsBounded(t *testing.T) {
	buffer, applied := reorderBuffer{}, 0
	for seq := uint64(2); seq <= maxBuffered+5; seq++ {
		applied += len(buffer.Add([]wire.Update{{Seq: seq}}, 0))
	}
	if len(buffer.updates)+applied != maxBuffered+4 || applied < maxBuffered {
		t.Errorf("%d buffered and %d applied of %d", len(buffer.updates), applied, maxBuffered+4)
	}
}
