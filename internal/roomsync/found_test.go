package roomsync

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/rooms"
)

func finding(t *testing.T, text string) *Follower {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := New(Config{File: file, Log: slog.New(slog.DiscardHandler)}, prometheus.NewRegistry())
	if err := f.Load(); err != nil {
		t.Fatal(err)
	}
	return f
}

// A board that matches a pattern has its mode once it is read, and as long as it is.
func TestBoardsAreFoundByTheirReads(t *testing.T) {
	f := finding(t, `boards: [{match: "lb:*:weekly", mode: super-hot}, {match: "lb:*", mode: hot}, {match: "lb:x*", mode: blocked}]`)
	for _, b := range []rankcache.BoardID{"lb:eu:weekly", "lb:eu:daily", "lb:xeu:weekly", "other"} {
		f.Use(b)
	}
	f.poll(t.Context())
	if hot, whole := f.Boards(rooms.ModeHot), f.Boards(rooms.ModeSuperHot); !slices.Equal(hot, []rankcache.BoardID{"lb:eu:daily"}) || !slices.Equal(whole, []rankcache.BoardID{"lb:eu:weekly"}) {
		t.Errorf("hot %v, super-hot %v", hot, whole)
	}
	if changed, _ := f.take(time.Now().Add(foundLasts / 2)); changed {
		t.Error("boards are let go while they are read")
	}
	if changed, _ := f.take(time.Now().Add(2 * foundLasts)); !changed || len(*f.used.Load()) != 0 {
		t.Error("boards that are not read any more are kept:", *f.used.Load())
	}
}

// Beyond the most that are kept, further boards are told of and not kept, until there is room.
func TestFoundBoardsHaveACap(t *testing.T) {
	f := finding(t, `boards: [{match: "lb:*", mode: hot}]`)
	for i := range MaxFound + 1 {
		f.Use(rankcache.BoardID(fmt.Sprint("lb:", i)))
	}
	f.poll(t.Context())
	if s := f.Status().Found; s.Boards != MaxFound || !strings.Contains(s.Error, "no more are kept") || len(f.Boards(rooms.ModeHot)) != MaxFound {
		t.Errorf("%+v, %d hot boards", s, len(f.Boards(rooms.ModeHot)))
	}
	f.poll(t.Context())
	if s := f.Status().Found; s.Error != "" {
		t.Error("still told though nothing more was read:", s.Error)
	}
}
