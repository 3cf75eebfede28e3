package wire

import (
	"errors"
	"strconv"
	"testing"
	"time"
)

func FuzzParseWritten(f *testing.F) {
	for _, text := range []string{"1764195781123456", "", "0", "-1", "+1", "1764195781.1", "99999999999999999", " 1", "1_0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := ParseWritten(text)
		us, parsed := strconv.ParseInt(text, 10, 64)
		valid := parsed == nil && us > 0 && len(text) <= MaxWrittenLen && text[0] != '+'
		if (err == nil) != valid || err == nil && at.UnixMicro() != us || err != nil && (!errors.Is(err, ErrWritten) || !at.Equal(time.Time{})) {
			t.Errorf("%q: %v, %v", text, at, err)
		}
	})
}
