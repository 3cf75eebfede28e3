package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"rankcache"
	"rankcache/class"
)

// ErrSplit reports what is not answered for boards that are split into shards.
var ErrSplit = errors.New("not answered for split boards")

// errSplit tells Read that the board is kept as shards, each of which is to be read.
var errSplit = errors.New("the board is split")

// splits are the boards that are read as shards.
type splits struct {
	boards sync.Map // rankcache.BoardID: *splitBoard
	n      atomic.Int64
	rooms  sync.Pool // of *splitRead
}

// maxSplits is how many boards are kept; beyond it all are forgotten.
const maxSplits = 1 << 12

// splitBoard is what is kept of one board.
type splitBoard struct {
	ids []rankcache.BoardID // of its shards
	top atomic.Pointer[splitTop]
}

// splitTop is the head of a board, merged of those of its shards. It is immutable.
type splitTop struct {
	parts   []*rankcache.Kept // of the shards' answers that it was made of
	entries []rankcache.Entry // the first limit rows
	limit   int
	kept    rankcache.Kept
}

// board returns what is kept of a board of n shards.
func (s *splits) board(id rankcache.BoardID, n int) *splitBoard {
	if b, ok := s.boards.Load(id); ok && len(b.(*splitBoard).ids) == n {
		return b.(*splitBoard)
	}
	if s.n.Add(1) > maxSplits {
		s.boards.Clear()
		s.n.Store(1)
	}
	id = rankcache.BoardID(strings.Clone(string(id)))
	b := &splitBoard{ids: make([]rankcache.BoardID, n)}
	for i := range b.ids {
		b.ids[i] = class.ShardID(id, i)
	}
	s.boards.Store(id, b)
	return b
}

// splitRead is one read of a board as shards.
type splitRead struct {
	reader *Reader
	board  *splitBoard
	q      *rankcache.Query
	parts  []part
	qs     []rankcache.Query
	as     []rankcache.Answer
	asked  []int
}

// part is a shard, with what it has answered first.
type part struct {
	rankcache.Answer
	known bool // it was asked
}

// readSplit answers of the shards of a board, in one call of Redis for its rows, and one more for where
// members stand in the other shards. An error of one shard is that of the answer: a board with a part
// missing would be another board.
func (r *Reader) readSplit(ctx context.Context, q *rankcache.Query, a *rankcache.Answer) {
	n := r.tiers().Shards(q.Board)
	if err := checkSplit(q, n); err != nil {
		a.Fail(err)
		return
	}
	s, ok := r.splits.rooms.Get().(*splitRead)
	if !ok {
		s = new(splitRead)
	}
	defer func() {
		s.forget()
		r.splits.rooms.Put(s)
	}()
	s.reader, s.q, s.board = r, q, r.splits.board(q.Board, n)
	s.grow(n)
	if err := s.read(ctx, a); err != nil {
		a.Fail(err)
	}
}

// checkSplit returns an error for what shards can't answer together.
func checkSplit(q *rankcache.Query, n int) error {
	switch {
	case n == 0:
		return fmt.Errorf("%w: the classes have changed meanwhile", rankcache.ErrUnavailable)
	case q.Limit > 0 && q.Start+q.Limit > rankcache.MaxTop:
		return fmt.Errorf("%w: %d rows from %d: a split board has pages of its first %d rows", ErrRange, q.Limit, q.Start, rankcache.MaxTop)
	case q.Mode == rankcache.Dense:
		return fmt.Errorf("%w: the same score in two shards is one score", rankcache.ErrRankMode)
	case q.Around > 0 && q.Ranked():
		return fmt.Errorf("%w: neighbours with a rank_mode or a percentile: ask for one of them", ErrSplit)
	case q.Trimmed || q.Scores != nil:
		return ErrSplit
	case (q.MinSeq != 0 || q.MinState.Run != 0) && len(q.Members) != 1:
		return fmt.Errorf("%w: min_seq and min_state are of the shard of one member: name it", ErrSplit)
	}
	return nil
}

func (s *splitRead) grow(n int) {
	if cap(s.parts) < n {
		s.parts, s.qs, s.as, s.asked = make([]part, n), make([]rankcache.Query, n), make([]rankcache.Answer, n), make([]int, n)
	}
	s.parts = s.parts[:n]
}

// forget drops what the answers hold of boards.
func (s *splitRead) forget() {
	clear(s.parts)
	clear(s.qs[:cap(s.qs)])
	clear(s.as[:cap(s.as)])
	s.q, s.board = nil, nil
}

func (s *splitRead) read(ctx context.Context, a *rankcache.Answer) error {
	if err := s.readParts(ctx); err != nil {
		return err
	}
	places, err := s.readPlaces(ctx)
	if err != nil {
		return err
	}
	s.begin(a)
	if s.q.Range != nil {
		s.addRange(a)
	} else if s.q.Limit > 0 {
		s.addTop(a)
	}
	s.addOwn(a, places)
	return nil
}

// readParts reads rows of all shards, and members of theirs.
func (s *splitRead) readParts(ctx context.Context) error {
	q := s.q
	n := len(s.parts)
	found, err := s.ask(ctx, func(shard int, ask *rankcache.Query) bool {
		ask.Uncounted, ask.Range = q.Uncounted, q.Range
		if q.Limit > 0 {
			ask.Limit = q.Start + q.Limit
		}
		for _, m := range q.Members {
			if class.ShardOf(m, n) == shard {
				ask.Members, ask.MinSeq, ask.MinState = append(ask.Members, m), q.MinSeq, q.MinState
			}
		}
		return ask.Limit > 0 || ask.Range != nil || len(ask.Members) > 0
	})
	if err != nil {
		return err
	}
	s.keep(found)
	return nil
}

// keep takes the answers of shards that have none yet.
func (s *splitRead) keep(found []rankcache.Answer) {
	for i, shard := range s.asked {
		if p := &s.parts[shard]; !p.known {
			p.Answer, p.known = found[i], true
			found[i] = rankcache.Answer{} // its room is the part's now
		}
	}
}

// ask reads the shards for which set returns true, with the query that it has completed. The answers are
// in the order of asked, and without an error.
func (s *splitRead) ask(ctx context.Context, set func(shard int, ask *rankcache.Query) bool) ([]rankcache.Answer, error) {
	q := s.q
	s.qs, s.asked = s.qs[:0], s.asked[:0]
	for shard, id := range s.board.ids {
		ask := rankcache.Query{Board: id, Room: q.Room, Order: q.Order, Around: q.Around, Gap: q.Gap, Mode: q.Mode, Percentile: q.Percentile, MaxAge: q.MaxAge, Wait: q.Wait, CopiesOnly: q.CopiesOnly}
		if ask.Mode == rankcache.Approx { // what is summed up has to be exact
			ask.Mode = rankcache.Ordinal
		}
		if set(shard, &ask) {
			s.qs, s.asked = append(s.qs, ask), append(s.asked, shard)
		}
	}
	found := s.as[:len(s.qs)]
	if len(found) == 0 {
		return nil, nil
	}
	s.reader.Read(ctx, s.qs, found)
	for i := range found {
		switch a := &found[i]; {
		case a.Err == rankcache.ErrNotKept:
			return nil, a.Err
		case a.Err != nil:
			return nil, fmt.Errorf("shard %s: %w", s.qs[i].Board, a.Err)
		case a.Foreign:
			return nil, fmt.Errorf("%w: shard %s has %d members that no writer left there: its next command has a writer adopt it", rankcache.ErrUnavailable, s.qs[i].Board, a.Members)
		}
	}
	return found, nil
}

// begin begins the answer: of the latest change of a shard, and current since the shard that is so for
// longest.
func (s *splitRead) begin(a *rankcache.Answer) {
	stamp := rankcache.Stamp{Life: rankcache.LifeFinal}
	source, current := rankcache.SourceLocal, s.parts[0].CurrentAt
	stamp.HasSum = true
	shards := make([]uint64, len(s.parts))
	for i := range s.parts {
		p := &s.parts[i]
		addStamp(&stamp, &p.Stamp)
		shards[i] = p.Seq
		source = max(source, p.Source)
		if p.CurrentAt.Before(current) {
			current = p.CurrentAt
		}
	}
	if stamp.Seq == 0 { // nothing tells that it is closed
		stamp.Life = rankcache.LifeOpen
	}
	a.Begin(s.q, source, stamp, current)
	a.Shards = shards
}

// sumMask has the bits of a checksum.
const sumMask = 1<<48 - 1

// addStamp adds a shard's stamp to that of the board. A shard that has no member yet may be in no state.
func addStamp(to, shard *rankcache.Stamp) {
	if shard.Run != 0 {
		to.Life = min(to.Life, shard.Life)
	}
	to.HasSum = to.HasSum && (shard.HasSum || shard.Run == 0 && shard.Members == 0)
	to.Seq += shard.Seq
	to.Sum = (to.Sum + shard.Sum) & sumMask
	to.Members += shard.Members
	if shard.At.After(to.At) {
		to.At = shard.At
	}
}

// addTop adds the first rows: those that were merged before, if no shard has changed since.
func (s *splitRead) addTop(a *rankcache.Answer) {
	top := s.board.top.Load()
	if !s.isOf(top) {
		top = s.merged()
		if s.kept() {
			s.board.top.Store(top)
		}
	}
	n := min(s.q.Start+s.q.Limit, len(top.entries))
	a.Entries = top.entries[min(s.q.Start, n):n:n]
	if top.parts != nil {
		a.Kept = &top.kept
	}
	if s.q.Ranked() && len(a.Entries) > 0 {
		a.Ahead = rankcache.Ahead{Members: firstOf(top.entries, s.q.Start, s.q.Form), Scores: -1}
	}
}

// firstOf returns the index of the first row with the score of another one.
func firstOf(rows []rankcache.Entry, at int, form rankcache.ScoreForm) int {
	first := at
	for first > 0 && form.Same(rows[first-1].Score, rows[at].Score) {
		first--
	}
	return first
}

// kept reports whether the answers of all shards are of copies that tell when they change.
func (s *splitRead) kept() bool {
	for i := range s.parts {
		if s.parts[i].Kept == nil || !s.parts[i].Source.IsCopy() {
			return false
		}
	}
	return s.q.Order == rankcache.Descending
}

// isOf reports whether the top is of the shards' answers, and has the rows that are wanted.
func (s *splitRead) isOf(top *splitTop) bool {
	if top == nil || top.limit < s.q.Start+s.q.Limit || s.q.Order != rankcache.Descending {
		return false
	}
	for i := range s.parts {
		if s.parts[i].Kept != top.parts[i] {
			return false
		}
	}
	return true
}

func (s *splitRead) merged() *splitTop {
	limit := s.q.Start + s.q.Limit
	top := &splitTop{entries: s.mergeRows(limit), limit: limit}
	if s.kept() {
		top.parts = make([]*rankcache.Kept, len(s.parts))
		for i := range s.parts {
			top.parts[i] = s.parts[i].Kept
		}
	}
	return top
}

// mergeRows returns the first rows of those of all shards.
func (s *splitRead) mergeRows(limit int) []rankcache.Entry {
	lists, all := make([][]rankcache.Entry, 0, len(s.parts)), 0
	for i := range s.parts {
		if rows := s.parts[i].Entries; len(rows) > 0 {
			lists, all = append(lists, rows), all+len(rows)
		}
	}
	merged := make([]rankcache.Entry, 0, min(limit, all))
	for len(merged) < cap(merged) {
		best := 0
		for i := 1; i < len(lists); i++ {
			if before(&lists[i][0], &lists[best][0], s.q.Order) {
				best = i
			}
		}
		merged = append(merged, lists[best][0])
		if lists[best] = lists[best][1:]; len(lists[best]) == 0 {
			lists[best] = lists[len(lists)-1]
			lists = lists[:len(lists)-1]
		}
	}
	return merged
}

// before reports whether row a stands before row b.
func before(a, b *rankcache.Entry, order rankcache.Direction) bool {
	by := cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.Member, b.Member))
	if order == rankcache.Ascending {
		return by < 0
	}
	return by > 0
}

// addRange adds rows with scores in the range of the query.
func (s *splitRead) addRange(a *rankcache.Answer) {
	ahead := 0
	for i := range s.parts {
		ahead += s.parts[i].Start
		a.Matches += s.parts[i].Matches
	}
	rows := s.mergeRows(s.q.Start + s.q.Limit)
	a.Start, a.Entries = ahead+s.q.Start, rows[min(s.q.Start, len(rows)):]
	if s.q.Ranked() && len(a.Entries) > 0 {
		a.Ahead = rankcache.Ahead{Members: ahead + firstOf(rows, s.q.Start, s.q.Form), Scores: -1}
	}
}
