package rankcache

import (
	"fmt"
	"strings"
)

// MaxBoardLen is the longest board id, in bytes. With the topic prefix it
// stays under Kafka's 249 characters for a topic name.
const MaxBoardLen = 200

// BoardID names one leaderboard; it is the id behind its Redis key, such as
// "1_2_3" (app, rank, sub-rank).
type BoardID string

// ParseBoardID returns s as a BoardID, or an error that wraps [ErrBoard].
func ParseBoardID(s string) (BoardID, error) {
	b := BoardID(s)
	return b, b.Check()
}

// Check returns an error that wraps [ErrBoard] unless the id is 1 to
// [MaxBoardLen] characters of A-Z, a-z, 0-9 and "._:-".
func (b BoardID) Check() error {
	if len(b) == 0 || len(b) > MaxBoardLen {
		return fmt.Errorf("%w: %d characters, want 1 to %d", ErrBoard, len(b), MaxBoardLen)
	}
	for i := range len(b) {
		if !boardChar[b[i]] {
			return fmt.Errorf("%w %q: character %q at %d, want A-Z a-z 0-9 . _ : -", ErrBoard, string(b), b[i], i)
		}
	}
	return nil
}

var boardChar = func() (set [256]bool) {
	for c := range 256 {
		alnum := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		set[c] = alnum || strings.IndexByte("._:-", byte(c)) >= 0
	}
	return set
}()
