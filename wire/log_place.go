package wire

import (
	"fmt"
	"strconv"
	"strings"

	"rankcache"
)

// LogEntry is an entry of the log in Redis. Changes are as [DecodeLog] reads them.
type LogEntry struct {
	Place   int64 // as LogPlace returns it
	Board   rankcache.BoardID
	Changes string
}

// placeBits are those of a place that tell apart the entries of a millisecond.
const placeBits = 20

// LogPlace returns the place in the log of the entry with an id, which is a time in milliseconds and a number. Later
// entries have higher places, and one second is [LogSecond].
func LogPlace(id string) (int64, error) {
	ms, n, _ := strings.Cut(id, "-")
	at, err := strconv.ParseInt(ms, 10, 64-1-placeBits)
	if err != nil {
		return 0, fmt.Errorf("entry %q of the log: %w", id, err)
	}
	number, err := strconv.ParseInt(n, 10, 64)
	if err != nil || number < 0 || number >= 1<<placeBits {
		return 0, fmt.Errorf("entry %q of the log: want less than %d in one millisecond: check that the clock of Redis has not gone back", id, 1<<placeBits)
	}
	return at<<placeBits | number, nil
}

// LogSecond is by how much places differ of entries that are a second apart.
const LogSecond = 1000 << placeBits

// LogID returns the id of a place.
func LogID(place int64) string {
	return strconv.FormatInt(place>>placeBits, 10) + "-" + strconv.FormatInt(place&(1<<placeBits-1), 10)
}
