package hotkey

import (
	"context"

	"rankcache"
	"rankcache/wire"
)

// Source returns the boards that a server finds hot, for the whole fleet.
type Source interface {
	// Name identifies the source in logs and metrics.
	Name() string
	// Hot returns the hot boards, soon after ctx is done. An error may wrap a [*CallError]: when to call again.
	Hot(ctx context.Context) (HotBoards, error)
}

// HotBoards is one answer of a source.
type HotBoards struct {
	Boards  []BoardCount
	Ignored int // hot keys that belong to no board
}

// BoardCount is a board and its requests; a source may use another unit.
type BoardCount struct {
	Board rankcache.BoardID `json:"board"`
	Count int64             `json:"count"`
}

// addKey adds the board of a Redis key, or counts the key as ignored.
func (s *HotBoards) addKey(names wire.Names, key string, count int64) {
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
