package hotkey

import (
	"context"

	"rankcache"
	"rankcache/wire"
)

// Source says which boards are hot. Tencent and RedisHotKeys ask a server on
// behalf of the fleet; Self and Static speak for this sidecar.
type Source interface {
	// Name is a word for logs and metrics.
	Name() string
	// Hot returns the boards that are hot now. It returns soon after ctx is
	// done. An error may wrap a [*CallError], which says when to call again.
	Hot(ctx context.Context) (Sample, error)
}

// Sample is one answer of a source. An empty one says that nothing is hot.
type Sample struct {
	Boards []BoardCount
	// Ignored is the number of hot keys that are no board's.
	Ignored int
}

// BoardCount is one hot board. The unit of Count is its source's.
type BoardCount struct {
	Board rankcache.BoardID `json:"board"`
	Count int64             `json:"count"`
}

// addKey adds a Redis key to the sample: as a board if it is one.
func (s *Sample) addKey(names wire.Names, key string, count int64) {
	if b, ok := names.BoardOfKey(key); ok {
		s.Boards = append(s.Boards, BoardCount{b, count})
		return
	}
	s.Ignored++
}

// After says when a source that failed is to be called again.
type After string

// Classes of failure.
const (
	AfterPause    After = "soon"     // a hiccup: at the usual pace
	AfterBackoff  After = "back-off" // too many calls, or unknown: ever more slowly
	AfterOperator After = "stop"     // settings or rights are wrong: an operator must look
)

// CallError is a failed call of a source.
type CallError struct {
	Code  string // one of a few words, fit for a metric label
	After After
	Err   error // says what to check; holds no secret
}

func (e *CallError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }
