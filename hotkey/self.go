package hotkey

import (
	"context"
	"math"
	"sync"
	"time"

	"rankcache"
)

// Self is this sidecar's own requests.
type Self struct {
	counters *counters
	promote  float64 // requests/s from which a board is busy

	mu      sync.Mutex // guards the rest: the last second's outcome
	busy    []boardCount
	elapsed time.Duration
}

func newSelf(promoteRate float64) *Self {
	return &Self{counters: newCounters(uint32(min(promoteRate/2, 8))), promote: promoteRate, elapsed: second}
}

// Name returns "self".
func (s *Self) Name() string { return "self" }

// Hot returns the boards that reached the promote rate in the last second, with
// their requests.
func (s *Self) Hot(context.Context) (Sample, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sample Sample
	for _, b := range s.busy {
		sample.Boards = append(sample.Boards, BoardCount{b.board, int64(b.n)})
	}
	return sample, nil
}

// Rate returns the board's requests/s in the last second.
func (s *Self) Rate(board rankcache.BoardID) float64 {
	s.mu.Lock()
	elapsed := s.elapsed
	s.mu.Unlock()
	return float64(s.counters.lastSecond(board)) / elapsed.Seconds()
}

// roll ends a second that took elapsed and returns the boards that were busy.
func (s *Self) roll(elapsed time.Duration) []rankcache.BoardID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.elapsed = elapsed
	s.busy = s.counters.roll(uint32(math.Ceil(s.promote*elapsed.Seconds())), s.busy[:0])
	boards := make([]rankcache.BoardID, len(s.busy))
	for i, b := range s.busy {
		boards[i] = b.board
	}
	return boards
}
