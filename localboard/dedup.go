package localboard

import (
	"hash/maphash"
	"math/bits"
)

const seqsPerPage = 4096 // how many seqs one page of the bitmap covers: 512 bytes

// seqSet is the set of a board's seqs that were seen: all up to contiguous, and those in the bitmap pages ahead of it.
// Seqs that arrive in order cost nothing; a seq far ahead costs one page, however far.
type seqSet struct {
	contiguous, highest uint64
	pages               map[uint64]*bitmap // by seq / seqsPerPage
	// lastPage is the page used last: the seqs of a partition rise, so that the next one is nearly always in it.
	lastPage   *bitmap
	lastPageNo uint64
}

// bitmap is one page. A full one has no words.
type bitmap struct {
	words []uint64
	count int
}

// add adds seq and returns false if it is in the set already.
func (s *seqSet) add(seq uint64) bool {
	if seq <= s.contiguous {
		return false
	}
	s.highest = max(s.highest, seq)
	if seq == s.contiguous+1 {
		s.contiguous = seq
		if len(s.pages) > 0 {
			s.advance()
		}
		return true
	}
	return s.page(seq / seqsPerPage).set(seq % seqsPerPage)
}

// acceptTo adds all seqs up to seq.
func (s *seqSet) acceptTo(seq uint64) {
	if seq <= s.contiguous {
		return
	}
	s.contiguous = seq
	s.highest = max(s.highest, seq)
	for no := range s.pages {
		if no < seq/seqsPerPage {
			s.drop(no)
		}
	}
	s.advance()
}

// advance moves contiguous up to the next hole and drops the pages that it passes.
func (s *seqSet) advance() {
	for s.contiguous < s.highest {
		next := s.contiguous + 1
		if next%seqsPerPage == 0 {
			s.drop(next/seqsPerPage - 1)
		}
		b := s.pages[next/seqsPerPage]
		if b == nil {
			return
		}
		run := b.run(next % seqsPerPage)
		if s.contiguous += run; run == 0 {
			return
		}
	}
	clear(s.pages)
	s.lastPage = nil
}

func (s *seqSet) page(no uint64) *bitmap {
	if s.lastPage != nil && s.lastPageNo == no {
		return s.lastPage
	}
	b := s.pages[no]
	if b == nil {
		if s.pages == nil {
			s.pages = make(map[uint64]*bitmap)
		}
		b = &bitmap{words: make([]uint64, seqsPerPage/64)}
		s.pages[no] = b
	}
	s.lastPage, s.lastPageNo = b, no
	return b
}

func (s *seqSet) drop(no uint64) {
	delete(s.pages, no)
	if s.lastPageNo == no {
		s.lastPage = nil
	}
}

// set sets bit i and returns false if it was set already.
func (b *bitmap) set(i uint64) bool {
	if b.words == nil || b.words[i/64]&(1<<(i%64)) != 0 {
		return false
	}
	b.words[i/64] |= 1 << (i % 64)
	if b.count++; b.count == seqsPerPage {
		b.words = nil
	}
	return true
}

// run returns how many bits are set from i to the first that is not, or to the end of the page.
func (b *bitmap) run(i uint64) uint64 {
	if b.words == nil {
		return seqsPerPage - i
	}
	for at := i; ; {
		ones := uint64(bits.TrailingZeros64(^(b.words[at/64] >> (at % 64))))
		if left := 64 - at%64; ones < left {
			return at + ones - i
		} else if at += left; at == seqsPerPage {
			return at - i
		}
	}
}

func (s *seqSet) bytes() int {
	const entry = 64 // map entry and bitmap header
	n := 0
	for _, b := range s.pages {
		n += entry + 8*len(b.words)
	}
	return n
}

// orderIDs is the order ids applied to a board without seqs, as 128-bit hashes with the process's own seeds: of a
// billion two collide with odds under 1 in 10^20. It grows with the orders.
type orderIDs struct {
	seeds  [2]maphash.Seed
	hashes map[[2]uint64]struct{}
}

func newOrderIDs() orderIDs {
	return orderIDs{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

// add adds an order id and returns false if it is in the set already.
func (o *orderIDs) add(id string) bool {
	if o.hashes == nil {
		o.hashes = make(map[[2]uint64]struct{})
	}
	before := len(o.hashes)
	o.hashes[[2]uint64{maphash.String(o.seeds[0], id), maphash.String(o.seeds[1], id)}] = struct{}{}
	return len(o.hashes) > before
}

func (o *orderIDs) bytes() int {
	const entry = 28 // 16 bytes and a control byte, at the map's usual fill
	return entry * len(o.hashes)
}
