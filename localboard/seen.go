package localboard

import "math/bits"

// seenPage is how many seqs one page of the bitmap covers: 512 bytes.
const seenPage = 4096

// seen remembers which seqs of a board have come: all up to contiguous, and
// those of the bitmap pages ahead of it. Seqs that come in order cost nothing; a
// seq far ahead costs one page, however far.
type seen struct {
	contiguous, highest uint64
	ahead               map[uint64]*bitmap // by seq / seenPage
	// last is the page used last: each partition's seqs rise, so that it is
	// nearly always the next one's too.
	last   *bitmap
	lastNo uint64
}

// bitmap says which seqs of one page have come. A full one gives up its words.
type bitmap struct {
	words []uint64
	count int
}

// add notes seq and returns false if it had come before.
func (s *seen) add(seq uint64) bool {
	if seq <= s.contiguous {
		return false
	}
	s.highest = max(s.highest, seq)
	if seq == s.contiguous+1 {
		s.contiguous = seq
		if len(s.ahead) > 0 {
			s.advance()
		}
		return true
	}
	return s.page(seq / seenPage).set(seq % seenPage)
}

// settle counts every seq up to seq as come.
func (s *seen) settle(seq uint64) {
	if seq <= s.contiguous {
		return
	}
	s.contiguous = seq
	s.highest = max(s.highest, seq)
	for no := range s.ahead {
		if no < seq/seenPage {
			s.drop(no)
		}
	}
	s.advance()
}

// advance moves contiguous over the seqs that follow it without a hole, and
// drops the pages that it leaves.
func (s *seen) advance() {
	for s.contiguous < s.highest {
		next := s.contiguous + 1
		if next%seenPage == 0 {
			s.drop(next/seenPage - 1)
		}
		b := s.ahead[next/seenPage]
		if b == nil {
			return
		}
		run := b.run(next % seenPage)
		if s.contiguous += run; run == 0 {
			return
		}
	}
	clear(s.ahead)
	s.last = nil
}

func (s *seen) page(no uint64) *bitmap {
	if s.last != nil && s.lastNo == no {
		return s.last
	}
	b := s.ahead[no]
	if b == nil {
		if s.ahead == nil {
			s.ahead = make(map[uint64]*bitmap)
		}
		b = &bitmap{words: make([]uint64, seenPage/64)}
		s.ahead[no] = b
	}
	s.last, s.lastNo = b, no
	return b
}

func (s *seen) drop(no uint64) {
	delete(s.ahead, no)
	if s.lastNo == no {
		s.last = nil
	}
}

// set notes seq i of the page and returns false if it had come before.
func (b *bitmap) set(i uint64) bool {
	if b.words == nil || b.words[i/64]&(1<<(i%64)) != 0 {
		return false
	}
	b.words[i/64] |= 1 << (i % 64)
	if b.count++; b.count == seenPage {
		b.words = nil
	}
	return true
}

// run returns how many seqs from i to the end of the page have come without a
// hole.
func (b *bitmap) run(i uint64) uint64 {
	if b.words == nil {
		return seenPage - i
	}
	for at := i; ; {
		ones := uint64(bits.TrailingZeros64(^(b.words[at/64] >> (at % 64))))
		if left := 64 - at%64; ones < left {
			return at + ones - i
		} else if at += left; at == seenPage {
			return at - i
		}
	}
}

func (s *seen) bytes() int {
	const entry = 64 // map entry and bitmap header
	n := 0
	for _, b := range s.ahead {
		n += entry + 8*len(b.words)
	}
	return n
}
