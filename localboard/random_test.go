package localboard

import (
	"fmt"
	"math"
	"math/rand/v2"

	"rankcache/wire"
)

// generator makes random updates: with a seq, delivered out of order and more than
// once, or without, each with an order id, some of which are repeated.
type generator struct {
	*rand.Rand
	members int
	scores  func(*rand.Rand) float64
	seq     uint64
	sent    []wire.Update
}

func (s *generator) id() string { return fmt.Sprintf("user:%d", s.IntN(s.members)) }

func (s *generator) update(withSeq bool) wire.Update {
	u := wire.Update{Member: s.id(), Op: wire.Op(1 + s.IntN(3)), OrderID: fmt.Sprint("o", s.IntN(1<<20))}
	u.Score, u.Delta = s.scores(s.Rand), s.scores(s.Rand)
	if withSeq {
		s.seq++
		u.Seq = s.seq
	}
	s.sent = append(s.sent, u)
	return u
}

// batch returns n updates, shuffled, some of them sent before.
func (s *generator) batch(n int, withSeq bool) []wire.Update {
	us := make([]wire.Update, n)
	for i := range us {
		if len(s.sent) > 0 && s.IntN(10) == 0 {
			us[i] = s.sent[s.IntN(len(s.sent))]
		} else {
			us[i] = s.update(withSeq)
		}
	}
	s.Shuffle(n, func(i, j int) { us[i], us[j] = us[j], us[i] })
	return us
}

func smallScores(r *rand.Rand) float64 { return float64(r.IntN(20)) - 5 }

// anyScore returns doubles of all kinds: few and many digits, negative, huge,
// tiny, both zeros, infinite.
func anyScore(r *rand.Rand) float64 {
	switch r.IntN(8) {
	case 0:
		return math.Copysign(0, -1)
	case 1:
		return []float64{0, 1, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1)}[r.IntN(7)]
	case 2:
		if f := math.Float64frombits(r.Uint64()); !math.IsNaN(f) {
			return f
		}
		return 0
	case 3:
		return r.NormFloat64()
	default:
		return float64(r.IntN(7)) - 3
	}
}
