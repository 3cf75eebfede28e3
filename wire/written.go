package wire

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ErrWritten reports a value of [Names.WrittenKey] that is no time.
var ErrWritten = errors.New("bad time of a keeper")

// MaxWrittenLen is the length of the longest value of [Names.WrittenKey].
const MaxWrittenLen = 16

// ParseWritten reads a value of [Names.WrittenKey]: the time in Unix microseconds, by the clock of the Redis that the keeper
// writes to, at which it was written. A replica that has it has all that its master had then. The error wraps
// [ErrWritten].
func ParseWritten(text string) (time.Time, error) {
	us, err := strconv.ParseUint(text, 10, 63)
	if err != nil || us == 0 || len(text) > MaxWrittenLen {
		return time.Time{}, fmt.Errorf("%w: %d bytes that begin with %.4q: check that nothing else uses the key", ErrWritten, len(text), text)
	}
	return time.UnixMicro(int64(us)), nil // #nosec G115 -- 63 bits
}
