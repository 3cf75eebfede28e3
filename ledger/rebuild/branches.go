package rebuild

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"rankcache"
	"rankcache/wire"
)

var errForked = errors.New("the board has forked") // reports a topic that has several histories of a board

// stretch is a topic's part of one run, or of one history of it: Redis may go on from an older file without a new run.
type stretch struct {
	run         uint64
	first, last uint64 // seqs
	life        int    // its number; 0 is the earliest
	limit       uint64 // from this seq on a later stretch goes on otherwise: Redis has lost what this one has of it
	changes     map[uint64]change
}

// change tells one of several at a seq: by the checksum after it, and the digest of its order id.
type change struct{ sum, order uint64 }

func changeOf(u *wire.Update) change { return change{u.Sum, wire.Hash(u.OrderID, 0)} }

// whole reports whether no change is missing in between.
func (s *stretch) whole() bool { return uint64(len(s.changes)) == s.last-s.first+1 }

// outline is what a topic has of a board, by run, the latest history last. A first change 1 begins a life.
type outline map[uint64][]*stretch

// note adds a change, and reports whether it begins a stretch: it is a run's first, or its seq has another one.
func (o outline) note(u *wire.Update) (begins bool) {
	if len(o[u.Run]) == 0 {
		return o.begin(u)
	}
	s := o[u.Run][len(o[u.Run])-1]
	_, taken := s.changes[u.Seq]
	switch {
	case (taken || u.Seq != s.last+1) && o.find(u) != nil: // it was published twice
		return false
	case taken:
		return o.begin(u)
	}
	s.first, s.last = min(s.first, u.Seq), max(s.last, u.Seq)
	s.changes[u.Seq] = changeOf(u)
	return false
}

func (o outline) begin(u *wire.Update) bool {
	o[u.Run] = append(o[u.Run], &stretch{run: u.Run, first: u.Seq, last: u.Seq, changes: map[uint64]change{u.Seq: changeOf(u)}, limit: math.MaxUint64})
	return true
}

// find returns the stretch that has a change, the one where it stands if several have it; nil: none has.
func (o outline) find(u *wire.Update) (found *stretch) {
	for _, s := range slices.Backward(o[u.Run]) {
		if its, known := s.changes[u.Seq]; known && its == changeOf(u) && (found == nil || u.Seq < s.limit && u.Seq >= found.limit) {
			found = s
		}
	}
	return found
}

// all returns the stretches in the order in which the board went through them.
func (o outline) all() (all []*stretch) {
	for _, run := range slices.Sorted(maps.Keys(o)) {
		all = append(all, o[run]...)
	}
	return all
}

// arrange finds the lives, and returns how many there are.
func (o outline) arrange() (lives int) {
	all := o.all()
	for _, s := range all {
		if s.first == 1 || lives == 0 {
			lives++
		}
		s.life = lives - 1
	}
	limit := uint64(math.MaxUint64)
	for i, s := range slices.Backward(all) {
		if i+1 < len(all) && all[i+1].life != s.life {
			limit = math.MaxUint64
		}
		s.limit, limit = limit, min(limit, s.first)
	}
	return lives
}

// branches are the changes of a life that Redis has lost without a new run, and those of all its histories together.
type branches struct {
	left   map[string]*stretch // changes that do not stand, by order id
	sum    *life               // of the increments of all histories, each order id once; nil: not wanted
	added  map[string]bool
	others bool // there are changes that are no increments
}

func newBranches(sum bool) branches {
	b := branches{left: make(map[string]*stretch)}
	if sum {
		b.sum, b.added = newLife(), make(map[string]bool)
	}
	return b
}

// note adds a change. One whose order id comes again in a later history is not lost.
func (b *branches) note(u *wire.Update, s *stretch, forked bool) {
	id := u.OrderID
	if id == "" {
		id = fmt.Sprintf("\x00%d %d %d", u.Run, u.Seq, u.Sum)
	}
	if u.Seq < s.limit {
		delete(b.left, id)
	} else if forked {
		b.left[strings.Clone(id)] = s
	}
	b.others = b.others || u.Op != wire.OpIncr
	if b.sum == nil || b.added[id] {
		return
	}
	b.added[strings.Clone(id)] = true
	now := b.sum.members[u.Member]
	now.score += u.Delta
	b.sum.members[strings.Clone(u.Member)] = now
}

// forked tells which histories the topic has beside the one that stands; empty: that has them all.
func (l *logged) forked() string {
	if len(l.left) == 0 {
		return ""
	}
	changes := make(map[*stretch]int)
	for _, s := range l.left {
		changes[s]++
	}
	var text strings.Builder
	fmt.Fprintf(&text, "topic %s has several histories of it, as Redis went on from an older file:", l.topic)
	for _, s := range l.runs.all() {
		if n := changes[s]; n > 0 {
			fmt.Fprintf(&text, " run %d up to change %d (checksum %012x), of which %d changes from %d on are lost;", s.run, s.last, s.changes[s.last].sum, n, s.limit)
		}
	}
	now := l.now.state()
	fmt.Fprintf(&text, " the latest up to change %d (checksum %012x)", now.Seq, now.Sum)
	return text.String()
}

// addUp returns why the increments of all histories can't be added up, or nil.
func (l *logged) addUp(addable bool) error {
	if l.others || !addable {
		return fmt.Errorf("%w: only increments can be added up, and no class with ties, trim, rolling or durable", errForked)
	}
	var before uint64 // of the last life, up to which changes are there
	for _, s := range l.runs.all() {
		if s.life != l.lives-1 {
			continue
		}
		if !s.whole() || s.first > before+1 {
			return fmt.Errorf("%w: changes are missing between %d and %d of run %d, so the histories can't be added up: a compacted topic, or one whose beginning is gone", errLogShort, before, s.last, s.run)
		}
		before = max(before, s.last)
	}
	return nil
}

// holds reports whether the topic has a state of Redis where it is looked for.
func (l *logged) holds(redis rankcache.State) bool {
	return slices.ContainsFunc(l.runs.all(), func(s *stretch) bool {
		its, known := s.changes[redis.Seq]
		return known && its.sum == redis.Sum && s.life == l.lives-1 && (redis.Seq < s.limit || l.sum != nil)
	})
}
