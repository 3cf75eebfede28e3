package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestFoldedLog logs what happens to 5,000 boards at once, and to one.
func TestFoldedLog(t *testing.T) {
	var out bytes.Buffer
	folded := newFoldedLog(slog.NewTextHandler(&out, nil))
	log := slog.New(folded)
	for i := range 5000 {
		log.Info("board", "board", fmt.Sprint("b", i), "state", "open")
		log.Warn("board is filled again", "board", fmt.Sprint("b", i))
		log.Info("rooms file in force", "rooms", i)
	}
	log.Info("board", "board", "alone", "state", "stale")
	folded.tally.flush()
	for what, want := range map[string]int{
		"msg=board board=b":              maxBoardLines,
		`msg="board is filled again"`:    maxBoardLines,
		`msg="rooms file in force"`:      5000, // names no board
		"board=alone state=stale":        1,
		`level=INFO msg="more boards"`:   1,
		`level=WARN msg="more boards"`:   1,
		`boards=4990 event=board state=`: 1,
	} {
		if got := strings.Count(out.String(), what); got != want {
			t.Errorf("%d lines with %s, want %d", got, what, want)
		}
	}
	out.Reset()
	folded.tally.flush()
	log.Info("board", "board", "b1", "state", "open")
	if got := strings.Count(out.String(), "\n"); got != 1 || !strings.Contains(out.String(), "board=b1") {
		t.Errorf("after a second: %s", out.String())
	}
}

// TestFoldedLogAtDebug loses no line.
func TestFoldedLogAtDebug(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(newFoldedLog(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for i := range 100 {
		log.Info("board", "board", fmt.Sprint("b", i))
	}
	if got := strings.Count(out.String(), "level=DEBUG"); got != 100-maxBoardLines {
		t.Errorf("%d lines of level debug", got)
	}
}
