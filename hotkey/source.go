package hotkey

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"rankcache"
)

// Source returns the hot boards. Tencent and RedisHotKeys ask a server on behalf of
// the fleet; Self and Static are local to this sidecar.
type Source interface {
	// Name identifies the source in logs and metrics.
	Name() string
	// Hot returns the boards that are hot now. It returns soon after ctx is
	// done. An error may wrap a [*CallError], which tells when to call again.
	Hot(ctx context.Context) (HotBoards, error)
}

// HotBoards is one answer of a source.
type HotBoards struct {
	Boards  []BoardCount
	Ignored int // hot keys that belong to no board
}

// BoardCount is a board and its requests; a server-side source may use another unit.
type BoardCount struct {
	Board rankcache.BoardID `json:"board"`
	Count int64             `json:"count"`
}

// addKey adds the board of a Redis key, or counts the key as ignored.
func (s *HotBoards) addKey(names rankcache.Names, key string, count int64) {
	if b, ok := names.BoardOfKey(key); ok {
		s.Boards = append(s.Boards, BoardCount{b, count})
		return
	}
	s.Ignored++
}

// After tells when to call a source again after an error.
type After string

// Classes of failure.
const (
	AfterPause    After = "soon"     // temporary: at the usual interval
	AfterBackoff  After = "back-off" // too many calls, or unknown: with exponential back-off
	AfterOperator After = "stop"     // wrong settings or rights: after a long pause, an operator has to act
)

// CallError is a failed call of a source.
type CallError struct {
	Code  string // one of a few words, a metric label
	After After
	Err   error // what to check; without secrets
}

func (e *CallError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// Self counts the requests of this sidecar. Count, Hot and Rate may be called by any
// goroutine; Roll by one.
type Self struct {
	counters *counters
	promote  float64 // requests/s from which a board is busy

	mu      sync.Mutex // guards the rest, which is of the last second
	busy    []BoardCount
	elapsed time.Duration
}

// NewSelf returns a Self whose Hot returns boards with promoteRate requests/s or more.
func NewSelf(promoteRate float64) *Self {
	return &Self{counters: newCounters(uint32(min(promoteRate/2, 8))), promote: promoteRate, elapsed: second}
}

// Name returns "self".
func (s *Self) Name() string { return "self" }

// Hot returns the boards that reached the promote rate in the last second, with
// their requests.
func (s *Self) Hot(context.Context) (HotBoards, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return HotBoards{Boards: slices.Clone(s.busy)}, nil
}

// Count adds one request for the board. It keeps no reference to the id's memory.
func (s *Self) Count(board rankcache.BoardID) { s.counters.count(board) }

// Rate returns the board's requests/s in the last second.
func (s *Self) Rate(board rankcache.BoardID) float64 {
	s.mu.Lock()
	elapsed := s.elapsed
	s.mu.Unlock()
	return float64(s.counters.lastSecond(board)) / elapsed.Seconds()
}

// Roll ends a second that took elapsed and returns the boards that were busy in it.
func (s *Self) Roll(elapsed time.Duration) []rankcache.BoardID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.elapsed = elapsed
	s.busy = s.counters.roll(uint32(math.Ceil(s.promote*elapsed.Seconds())), s.busy[:0])
	boards := make([]rankcache.BoardID, len(s.busy))
	for i, b := range s.busy {
		boards[i] = b.Board
	}
	return boards
}

// Static returns the boards that the operator has pinned.
type Static struct {
	tiers func() *rankcache.Tiers
}

// NewStatic returns the source of the boards that are pinned in tiers.
func NewStatic(tiers func() *rankcache.Tiers) *Static { return &Static{tiers} }

// Name returns "static".
func (s *Static) Name() string { return "static" }

// Hot returns the pinned boards, with a count of 0.
func (s *Static) Hot(context.Context) (HotBoards, error) {
	var hot HotBoards
	for _, b := range s.boards() {
		hot.Boards = append(hot.Boards, BoardCount{Board: b})
	}
	return hot, nil
}

func (s *Static) boards() []rankcache.BoardID { return s.tiers().Boards(rankcache.ModeHot) }
