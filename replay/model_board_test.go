package replay

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"rankcache"
	"rankcache/localboard"
	"rankcache/wire"
)

// modelBoards is the real set of boards, and looks at each that is opened.
type modelBoards struct {
	*localboard.Boards
	board  *modelBoard
	opened func()
	mu     sync.Mutex
	closes int
}

func (s *modelBoards) Create(id rankcache.BoardID) Board {
	s.board = &modelBoard{Board: s.Boards.Create(id)}
	return s.board
}

func (s *modelBoards) Prepare(_ context.Context, b Board) { b.Publish() }

func (s *modelBoards) Open(id rankcache.BoardID) {
	s.Boards.Open(id)
	s.opened()
}

func (s *modelBoards) Close(id rankcache.BoardID) {
	_, was := s.Get(id)
	s.Boards.Close(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if was {
		s.closes++
	}
}

func (s *modelBoards) closed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closes
}

// modelBoard is a real board with faults of its own.
type modelBoard struct {
	*localboard.Board
	mu sync.Mutex
	// arm has the next update of a proved board applied wrongly, in a way that apply does
	// not see. wrong is its member, and wrongAt when it was; wrongFor is where an update
	// was applied after it.
	arm      bool
	wrong    string
	wrongAt  time.Time
	wrongFor string
	mendedAt time.Time // when an update made it right again, which is then to be published
	// changed is a member that reads of one kind show with another score than the tree.
	changed   string
	byScore   bool
	changedAt time.Time
}

func (b *modelBoard) Apply(us []wire.Update) rankcache.ApplyResult {
	b.mu.Lock()
	defer b.mu.Unlock()
	state := b.Board.State()
	if slices.ContainsFunc(us, func(u wire.Update) bool { return u.Member == b.changed }) {
		b.changed = ""
	}
	if b.arm && b.wrong == "" && state.HasSum && us[0].Run == state.Run && us[0].Seq == state.Seq+1 && us[0].Op != wire.OpDelete {
		return b.applyWrongly(us, state)
	}
	done := b.Board.Apply(us)
	if b.wrong != "" && done.Applied > 0 {
		if i := slices.IndexFunc(us, func(u wire.Update) bool { return u.Member == b.wrong }); i >= 0 {
			b.wrong, b.mendedAt = "", time.Now() // it set the member's score anew
		} else if state.HasSum {
			b.wrongFor = fmt.Sprintf("%d updates from %d on were applied to a board that was wrong", done.Applied, us[0].Seq)
		}
	}
	return done
}

func (b *modelBoard) applyWrongly(us []wire.Update, state rankcache.State) rankcache.ApplyResult {
	before, _, was := b.Board.Score(us[0].Member)
	u := us[0]
	u.Score += 0.5
	data, _ := b.Board.Data(u.Member)
	if u.Sum = state.Sum + wire.Hash(rankcache.JoinData(u.Member, u.Data), u.Score); was {
		u.Sum -= wire.Hash(rankcache.JoinData(u.Member, data), before)
	}
	u.Sum &= wire.SumMask
	done := b.Board.Apply([]wire.Update{u})
	if done.Applied == 1 {
		b.arm, b.wrong, b.wrongAt = false, strings.Clone(u.Member), time.Now()
	}
	if len(us) > 1 && !done.Refuted {
		rest := b.Board.Apply(us[1:])
		if rest.Applied > 0 {
			b.wrong, b.mendedAt = "", time.Now() // as in Apply
			if us[1].Member != u.Member {
				b.wrongFor = "an update was applied to a board that was wrong"
			}
		}
		done.Applied, done.Duplicate, done.Stale, done.Refuted = done.Applied+rest.Applied, done.Duplicate+rest.Duplicate, done.Stale+rest.Stale, rest.Refuted
	}
	return done
}

func (b *modelBoard) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong, b.changed = "", ""
	b.Board.Reset()
}

func (b *modelBoard) Score(member string) (float64, uint64, bool) {
	score, seq, ok := b.Board.Score(member)
	b.mu.Lock()
	defer b.mu.Unlock()
	if member == b.changed && b.byScore && ok {
		score++
	}
	return score, seq, ok
}

func (b *modelBoard) Snapshot() (rankcache.Stamp, iter.Seq[[]rankcache.Entry]) {
	stamp, pieces := b.Board.Snapshot()
	return stamp, func(yield func([]rankcache.Entry) bool) {
		for piece := range pieces {
			own := slices.Clone(piece)
			b.mu.Lock()
			for i := range own {
				if member, _ := rankcache.SplitData(own[i].Member); member == b.changed && !b.byScore {
					own[i].Score++
				}
			}
			b.mu.Unlock()
			if !yield(own) {
				return
			}
		}
	}
}

// modelFiles keeps every file that was saved of the board.
type modelFiles struct {
	mu     sync.Mutex
	rng    *rand.Rand
	all    []modelFile
	frozen bool // nothing is saved any more
}

type modelFile struct {
	saved   Saved
	entries []rankcache.Entry
}

// freeze keeps what is there until the next start.
func (f *modelFiles) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = true
}

func (f *modelFiles) Save(s Saved, pieces iter.Seq[[]rankcache.Entry]) error {
	file := modelFile{saved: s}
	for piece := range pieces {
		for _, e := range piece {
			file.entries = append(file.entries, rankcache.Entry{Member: strings.Clone(e.Member), Score: e.Score})
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.frozen {
		f.all = append(f.all, file)
	}
	return nil
}

// Load returns the newest file or an older one.
func (f *modelFiles) Load(rankcache.BoardID) (Saved, []rankcache.Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = false
	n := len(f.all)
	if n == 0 || f.rng.IntN(8) == 0 {
		return Saved{}, nil, fs.ErrNotExist
	}
	file := f.all[n-1]
	if f.rng.IntN(2) == 0 {
		file = f.all[f.rng.IntN(n)]
	}
	return file.saved, slices.Clone(file.entries), nil
}

func (f *modelFiles) ReadHeader(rankcache.BoardID) (Saved, int, error) {
	return Saved{}, 0, fs.ErrNotExist
}

func (f *modelFiles) Sweep([]rankcache.BoardID, time.Duration) error { return nil }
