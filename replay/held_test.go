package replay

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"rankcache/wire"
)

// strict takes updates as a board does, and fails when one comes ahead of another.
type strict struct {
	t          *testing.T
	contiguous uint64
	applied    map[uint64]string
}

func (s *strict) apply(us []wire.Update) {
	for _, u := range us {
		if u.Seq > s.contiguous+1 {
			s.t.Fatalf("update %d is applied after %d", u.Seq, s.contiguous)
		}
		s.contiguous = max(s.contiguous, u.Seq)
		s.applied[u.Seq] = u.Member
	}
}

// Whatever the order in which updates come, with repeats, all are applied, in
// order, and the strings of those that waited are not the batch's.
func TestHeldArranges(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		const n = 2000
		h, board := held{}, strict{t: t, applied: map[uint64]string{}}
		for from := 0; from < n; from += 100 {
			order := rng.Perm(100)
			for len(order) > 0 {
				var batch []wire.Update
				for range min(len(order), 1+rng.IntN(20)) {
					seq := uint64(from + order[0] + 1)
					batch, order = append(batch, wire.Update{Seq: seq, Member: fmt.Sprint(seq)}), order[1:]
					if rng.IntN(5) == 0 {
						batch = append(batch, batch[rng.IntN(len(batch))])
					}
				}
				board.apply(h.arrange(nil, batch, board.contiguous))
			}
		}
		if len(h.updates) != 0 || board.contiguous != n || len(board.applied) != n {
			t.Fatalf("seed %d: %d held, up to %d, %d applied", seed, len(h.updates), board.contiguous, len(board.applied))
		}
		for seq, member := range board.applied {
			if member != fmt.Sprint(seq) {
				t.Fatalf("update %d is of %s", seq, member)
			}
		}
	}
}

// What is held is bounded; beyond that nothing is lost.
func TestHeldGivesUp(t *testing.T) {
	h, applied := held{}, 0
	for seq := uint64(2); seq <= heldMost+5; seq++ {
		applied += len(h.arrange(nil, []wire.Update{{Seq: seq}}, 0))
	}
	if len(h.updates)+applied != heldMost+4 || applied < heldMost {
		t.Errorf("%d held and %d applied of %d", len(h.updates), applied, heldMost+4)
	}
}
