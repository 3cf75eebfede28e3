package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/rooms"
)

// ErrSplit reports what is not answered for boards that are split into shards.
var ErrSplit = errors.New("not answered for split boards")

// errSplit tells Read that the board is kept as shards, each of which is to be read.
var errSplit = errors.New("the board is split")

// splits are the boards that are read as shards.
type splits struct {
	next   source
	reader *Reader // of the shards, which are boards of their own
	tiers  func() *rooms.Tiers
	ledger bool // there is one

	boards sync.Map // rankcache.BoardID: *splitBoard
	n      atomic.Int64
	rooms  sync.Pool     // of *splitRead
	every  time.Duration // see lookEvery
}

const maxSplits = 1 << 12 // how many boards are kept; beyond it all are forgotten

// splitBoard is what is kept of one board.
type splitBoard struct {
	ids  []rankcache.BoardID // of its shards
	top  atomic.Pointer[splitTop]
	look atomic.Pointer[splitLook]
}

// splitTop is the head of a board, merged of those of its shards. It is immutable.
type splitTop struct {
	parts   []*rankcache.Kept // of the shards' answers that it was made of
	entries []rankcache.Entry // the first limit rows
	limit   int
	kept    rankcache.Kept
}

// splitLook is when the shards were last found to be those of a top, and what they were. It is immutable.
type splitLook struct {
	*splitTop
	rankcache.Answer
	room  string
	tiers *rooms.Tiers
	at    time.Time
}

// lookEvery is how long a head is answered before its shards are looked at again: 16 looks cost as much as a page.
const lookEvery = 2 * time.Millisecond

// answer answers a plain page by a look up to every old. Reads of copies look anew: a shard may have changed.
func (b *splitBoard) answer(q *rankcache.Query, a *rankcache.Answer, tiers *rooms.Tiers, every time.Duration) bool {
	look := b.look.Load()
	if look == nil || look.tiers != tiers || q.CopiesOnly || !q.Plain() || len(q.Members) > 0 || q.Bounded() || q.Order != rankcache.Descending || look.limit < q.Start+q.Limit || look.room != q.Room || time.Since(look.at) > every {
		return false
	}
	a.Begin(q, look.Source, look.Stamp, look.CurrentAt)
	a.Shards = look.Shards
	look.show(q, a)
	return true
}

// show sets the rows that q wants.
func (t *splitTop) show(q *rankcache.Query, a *rankcache.Answer) {
	n := min(q.Start+q.Limit, len(t.entries))
	if a.Entries = t.entries[min(q.Start, n):n:n]; t.parts != nil {
		a.Kept = &t.kept
	}
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
	b := &splitBoard{ids: class.ShardIDs(id, n)}
	s.boards.Store(id, b)
	return b
}

// splitRead is one read of a board as shards. It is used again.
type splitRead struct {
	splits *splits
	tiers  *rooms.Tiers
	board  *splitBoard
	q      *rankcache.Query
	parts  []rankcache.Answer // of each shard, of what it has answered first
	known  []bool             // which shards have one
	homes  []home             // of the members
	rows   questions          // about the shards' own rows and members
	places questions          // about where the members of others would stand
}

type home struct{ shard, at int } // the shard that has a member, and which one of the members there it is

// questions are asked of some shards.
type questions struct {
	qs     []rankcache.Query
	as     []rankcache.Answer
	shards []int
}

func (s *splits) read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, at []int) {
	pass(ctx, qs, as, at, func(i int) bool {
		if as[i].Err != errSplit {
			return false
		}
		s.readSplit(ctx, &qs[i], &as[i])
		return true
	}, s.next)
}

// readSplit answers of the shards of a board, in one call of Redis for its rows, and one more for where members stand
// in the other shards. An error of one shard is that of the answer: a board with a part missing would be another board.
func (s *splits) readSplit(ctx context.Context, q *rankcache.Query, a *rankcache.Answer) {
	tiers := s.tiers()
	n := tiers.Shards(q.Board)
	board := s.board(q.Board, n)
	if board.answer(q, a, tiers, s.every) || s.readFinal(ctx, q, a, tiers) {
		return
	}
	if err := checkSplit(q, n); err != nil {
		a.Fail(err)
		return
	}
	one, ok := s.rooms.Get().(*splitRead)
	if !ok {
		one = &splitRead{splits: s}
	}
	defer func() {
		one.forget()
		s.rooms.Put(one)
	}()
	one.tiers, one.q, one.board = tiers, q, board
	one.grow(n)
	if err := one.read(ctx, a); err != nil {
		a.Fail(err)
	}
}

// readFinal answers from the final, of all shards, once Redis has none. False: another board, or no final.
func (s *splits) readFinal(ctx context.Context, q *rankcache.Query, a *rankcache.Answer, tiers *rooms.Tiers) bool {
	if !s.ledger || q.CopiesOnly || q.Mode == rankcache.Dense {
		return false
	}
	if gone, _ := tiers.Ended(q.Board, time.Now()); gone == nil {
		return false
	}
	ask, as := []rankcache.Query{*q}, []rankcache.Answer{*a}
	if q.Mode == rankcache.Approx {
		ask[0].Mode = rankcache.Ordinal
	}
	s.next.read(ctx, ask, as, s.reader.places[:1])
	*a = as[0]
	return !errors.Is(a.Err, ErrGone)
}

// checkSplit returns an error for what shards can't answer together.
func checkSplit(q *rankcache.Query, n int) error {
	switch {
	case n == 0:
		return fmt.Errorf("%w: the classes have changed meanwhile", rankcache.ErrUnavailable)
	case q.Limit > 0 && q.Start+q.Limit > rankcache.MaxTop && q.Range != nil:
		return fmt.Errorf("%w: %d rows from %d: a split board has the first %d rows with such scores", ErrRange, q.Limit, q.Start, rankcache.MaxTop)
	case q.Limit > 0 && q.Start+q.Limit > rankcache.MaxTop && q.Ranked():
		return fmt.Errorf("%w: a rank_mode or a percentile of rows beyond the first %d", ErrSplit, rankcache.MaxTop)
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
		s.parts, s.known, s.rows, s.places = make([]rankcache.Answer, n), make([]bool, n), newQuestions(n), newQuestions(n)
	}
	s.parts, s.known, s.homes = s.parts[:n], s.known[:n], s.homes[:0]
	var next [class.MaxShards]int
	for _, m := range s.q.Members {
		shard := class.ShardOf(m, n)
		s.homes = append(s.homes, home{shard, next[shard]})
		next[shard]++
	}
}

func newQuestions(n int) questions {
	return questions{make([]rankcache.Query, 0, n), make([]rankcache.Answer, n), make([]int, 0, n)}
}

// forget drops what the answers hold of boards, and keeps their room.
func (s *splitRead) forget() {
	clear(s.parts)
	clear(s.known)
	s.rows.forget()
	s.places.forget()
	s.q, s.board, s.tiers = nil, nil, nil
}

func (q *questions) forget() {
	for i := range q.as {
		own := q.as[i].Own
		clear(own)
		q.as[i] = rankcache.Answer{Own: own[:0]}
	}
}

func (s *splitRead) read(ctx context.Context, a *rankcache.Answer) error {
	if s.isDeep() {
		return s.readDeep(ctx, a)
	}
	if err := s.readParts(ctx); err != nil {
		return err
	}
	err := s.readPlaces(ctx)
	if err != nil && s.q.Limit == 0 && s.q.Range == nil {
		return err
	}
	s.begin(a)
	if s.q.Range != nil {
		s.addRange(a)
	} else if s.q.Limit > 0 {
		s.addTop(a)
	}
	s.addOwn(a, err)
	return nil
}

func (s *splitRead) readParts(ctx context.Context) error {
	q := s.q
	return s.ask(ctx, &s.rows, func(shard int, ask *rankcache.Query) bool {
		ask.Uncounted, ask.Range = q.Uncounted, q.Range
		if q.Limit > 0 {
			ask.Limit = q.Start + q.Limit
		}
		for i, m := range q.Members {
			if s.homes[i].shard == shard {
				ask.Members, ask.MinSeq, ask.MinState = append(ask.Members, m), q.MinSeq, q.MinState
			}
		}
		return ask.Limit > 0 || ask.Range != nil || len(ask.Members) > 0
	})
}

// ask reads the shards that set completes a query for. Answers without one yet are their parts.
func (s *splitRead) ask(ctx context.Context, of *questions, set func(shard int, ask *rankcache.Query) bool) error {
	q := s.q
	of.qs, of.shards = of.qs[:0], of.shards[:0]
	for shard, id := range s.board.ids {
		of.qs = of.qs[:len(of.qs)+1]
		ask := &of.qs[len(of.qs)-1]
		*ask = rankcache.Query{Board: id, Room: q.Room, Order: q.Order, Around: q.Around, Gap: q.Gap, Mode: q.Mode, Percentile: q.Percentile, MaxAge: q.MaxAge, Wait: q.Wait, CopiesOnly: q.CopiesOnly,
			Members: ask.Members[:0], Scores: ask.Scores[:0]}
		if ask.Mode == rankcache.Approx { // what is summed up has to be exact
			ask.Mode = rankcache.Ordinal
		}
		if !set(shard, ask) {
			of.qs = of.qs[:len(of.qs)-1]
			continue
		}
		of.shards = append(of.shards, shard)
		if len(ask.Scores) == 0 {
			ask.Scores = nil
		}
	}
	if len(of.qs) == 0 {
		return nil
	}
	s.splits.reader.Read(ctx, of.qs, of.as[:len(of.qs)])
	s.fillGone(of)
	for i, shard := range of.shards {
		a := &of.as[i]
		if err := partError(&of.qs[i], a); err != nil {
			return err
		}
		if !s.known[shard] {
			s.parts[shard], s.known[shard] = *a, true
		}
	}
	return nil
}

// fillGone makes shards that are gone ones without a member, if others are there and there is a ledger: it has told
// that they never had one. So it is while the final of a board is late, for which the others are kept.
func (s *splitRead) fillGone(of *questions) {
	as := of.as[:len(of.qs)]
	there := func(a rankcache.Answer) bool { return a.Err == nil && a.Members > 0 }
	if !s.splits.ledger || !slices.ContainsFunc(as, there) {
		return
	}
	for i := range as {
		if !errors.Is(as[i].Err, ErrGone) {
			continue
		}
		as[i].Begin(&of.qs[i], rankcache.SourceRedis, rankcache.Stamp{}, time.Now())
		for k := range of.qs[i].Scores { // each would be the first there
			as[i].Own[k].Rank = 1
		}
	}
}

// partError returns why the answer of a shard is none of its board.
func partError(q *rankcache.Query, a *rankcache.Answer) error {
	switch {
	case a.Err == rankcache.ErrNotKept:
		return a.Err
	case a.Err != nil:
		return fmt.Errorf("shard %s: %w", q.Board, a.Err)
	case a.Foreign:
		return fmt.Errorf("%w: shard %s has %d members that no writer left there: its next command has a writer adopt it", rankcache.ErrUnavailable, q.Board, a.Members)
	}
	return nil
}

// begin begins the answer: of the latest change of a shard, and current since the shard that is so for longest.
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

const sumMask = 1<<48 - 1 // has the bits of a checksum

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
	top.show(s.q, a)
	if a.Kept != nil {
		look := &splitLook{splitTop: top, Answer: *a, room: strings.Clone(s.q.Room), tiers: s.tiers, at: time.Now()}
		look.Own = nil
		s.board.look.Store(look)
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

func before(a, b *rankcache.Entry, order rankcache.Direction) bool {
	by := cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.Member, b.Member))
	if order == rankcache.Ascending {
		return by < 0
	}
	return by > 0
}

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
