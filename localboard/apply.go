package localboard

import (
	"hash/maphash"
	"slices"
	"time"

	"rankcache"
	"rankcache/wire"
)

// writerState has the fields that the writers of a board change, with the board's lock held.
type writerState struct {
	members      members
	index        *index // nil until the first publication since New or Reset
	sorting      bool   // that publication is being made
	numbered     bool   // members are to keep their handles, because they are being loaded or sorted
	seqs         seqSet
	orderIDs     orderIDs
	changes      []change // since the last publication
	live         int      // members on the board, changes counted
	freshStorage bool     // set from New, Reset or a compaction until the next publication: no reader uses members yet
	// tombstones and liveAtCompaction are the removed and the live members that the last compaction kept.
	tombstones, liveAtCompaction int
	// forgottenSeq is the seq up to which a member without a record may have been removed.
	forgottenSeq uint64
	life         rankcache.Life
	proof
}

// clear starts with new storage; readers may still use the old.
func (s *writerState) clear() {
	*s = writerState{
		members:      newMembers(maphash.MakeSeed(), 0),
		orderIDs:     newOrderIDs(),
		freshStorage: true,
	}
}

func (s *writerState) progress() rankcache.Progress {
	return rankcache.Progress{
		Contiguous: s.seqs.contiguous,
		Highest:    s.seqs.highest,
		OrderIDs:   uint64(len(s.orderIDs.hashes)),
		Members:    s.live,
	}
}

func (s *writerState) state() rankcache.State {
	p := s.progress()
	state := rankcache.State{Run: s.run, Seq: p.Applied()}
	if s.strict {
		state.Sum, state.HasSum = s.sum, true
	}
	return state
}

type outcome uint8 // the result of one update

const (
	applied outcome = iota
	duplicate
	stale
	refuted // not the next update of this history, see applyStrict
)

func (s *writerState) applyAll(us []wire.Update) rankcache.ApplyResult {
	var n [refuted + 1]int
	for batch := range slices.Chunk(us, prefetchBatch) {
		tags := s.members.prefetch(batch)
		for i := range batch {
			if n[s.apply(&batch[i], tags[i])]++; n[refuted] > 0 {
				break
			}
		}
		if n[refuted] > 0 {
			break
		}
	}
	if s.strict {
		s.ring.forget(time.Now())
	}
	maybeCompact(s)
	return rankcache.ApplyResult{Applied: n[applied], Duplicate: n[duplicate], Stale: n[stale], Refuted: n[refuted] > 0}
}

// apply follows the apply rule: with a seq, the highest of a member counts; without one, each order id once.
func (s *writerState) apply(u *wire.Update, tag uint32) outcome {
	if s.strict {
		return s.applyStrict(u, tag)
	}
	if u.Seq == 0 {
		if !s.orderIDs.add(u.OrderID) {
			return duplicate
		}
	} else if !s.seqs.add(u.Seq) {
		return duplicate
	}
	m := s.members.findByTag(tag, u.Member)
	if m.record == nil {
		m = s.addMember(u.Member)
	}
	if m.record == nil || u.Seq != 0 && u.Seq < m.seq {
		return stale
	}
	return s.applyTo(m, u)
}

// applyStrict applies u if it is the next update and gives its sum. An earlier one must be that of the ring.
func (s *writerState) applyStrict(u *wire.Update, tag uint32) outcome {
	if u.Seq != 0 && u.Seq <= s.seqs.contiguous {
		if sum, known := s.ring.at(u.Seq); known && (!u.HasSum || u.Sum != sum) {
			return refuted
		}
		return duplicate
	}
	if u.Seq != s.seqs.contiguous+1 || !u.HasSum {
		return refuted
	}
	m := s.members.findByTag(tag, u.Member)
	if m.record == nil {
		if m = s.addMember(u.Member); m.record == nil {
			return refuted
		}
	}
	before := s.score(m)
	score := scoreAfter(before, u)
	data := s.dataTo(m.id(), u.Data, score)
	sum := s.sumAfter(m, before, score, data)
	if sum != u.Sum {
		return refuted
	}
	s.seqs.add(u.Seq)
	m.seq, s.sum = u.Seq, sum
	s.storeScore(m, before, score)
	s.storeData(m.id(), data)
	s.ring.add(sum)
	return applied
}

func (s *writerState) applyTo(m member, u *wire.Update) outcome {
	before := s.score(m)
	score := scoreAfter(before, u)
	if isAbsent(score) && !u.Op.Removes() {
		return stale
	}
	m.seq = max(m.seq, u.Seq)
	s.set(m, before, score, u.Data)
	return applied
}

// scoreAfter returns a member's score after u; absent if u removes it. With a seq u has the resulting score.
func scoreAfter(before float64, u *wire.Update) float64 {
	switch {
	case u.Op.Removes():
		return absent
	case u.Seq != 0 || u.Op == wire.OpSet:
		return u.Score + 0 // -0 becomes 0, as it prints
	case isAbsent(before):
		return u.Delta + 0
	default:
		return before + u.Delta
	}
}

// findOrAdd returns the member; its record is nil if none can be made.
func (s *writerState) findOrAdd(id string) member {
	if m := s.members.find(id); m.record != nil {
		return m
	}
	return s.addMember(id)
}

// addMember makes a record for a new member; nil if it doesn't fit. It may have been removed at forgottenSeq.
func (s *writerState) addMember(id string) member {
	if !s.members.fits(id) {
		return member{}
	}
	m := s.members.add(id)
	m.seq = s.forgottenSeq
	return m
}

// score returns the score of a member, unpublished changes included.
func (s *writerState) score(m member) float64 {
	if n := m.changeNo.Load(); n > 0 {
		return s.changes[n-1].next
	}
	return m.published()
}

// set changes a member's score and data, and keeps the sum. before is its present score.
func (s *writerState) set(m member, before, score float64, after string) {
	data := s.dataTo(m.id(), after, score)
	s.sum = s.sumAfter(m, before, score, data)
	s.storeScore(m, before, score)
	s.storeData(m.id(), data)
}

// storeScore changes a score, at once or, where readers may use the table, at the next Publish.
func (s *writerState) storeScore(m member, before, score float64) {
	s.live += present(score) - present(before)
	switch n := m.changeNo.Load(); {
	case n > 0:
		s.changes[n-1].next = score
	case s.index == nil && !s.sorting:
		m.publish(score)
	default:
		s.changes = append(s.changes, change{m.handle, m.tag, s.members.idKey(m.id()), before, score})
		m.changeNo.Store(uint32(len(s.changes)))
	}
}
