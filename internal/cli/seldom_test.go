package cli

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLinesThatRepeat: of warnings with one message some are written, and then how many were left out; others, and what is no
// warning, are written all the same.
func TestLinesThatRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(newSeldom(slog.NewTextHandler(&out, nil)))
		boards := log.With("of", "boards").WithGroup("g")
		written := func(message string) int { return strings.Count(out.String(), message) }
		for i := range 5000 {
			boards.Warn("board is not open", "board", i)
			log.Info("board is open", "board", i)
		}
		log.Error("board is lost")
		if n := written("board is not open"); n != linesEach {
			t.Errorf("%d warnings of 5,000 are written, want %d", n, linesEach)
		}
		if written("board is open") != 5000 || written("board is lost") != 1 || written("left_out") != 0 {
			t.Error("other lines are left out, or some are told to be")
		}
		time.Sleep(linesEvery)
		log.Warn("board is not open")
		boards.Warn("board is not open")
		if written("left_out=4980") != 1 || written("left_out") != 1 || written("board is not open") != linesEach+2 {
			t.Errorf("what was left out is not told once: %s", out.String()[out.Len()-200:])
		}
		for i := range 2 * maxLines {
			log.Warn(strings.Repeat("x", i))
		}
		if n := len(log.Handler().(seldom).lines.of); n > maxLines {
			t.Errorf("%d messages are counted", n)
		}
	})
}
