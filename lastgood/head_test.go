package lastgood

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"rankcache"
)

func TestHeadTellsHowLargeABoardIs(t *testing.T) {
	s, err := New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, members := range []int{0, 1, 1000, 50_000} {
		entries := make([]rankcache.Entry, members)
		for i := range entries {
			entries[i] = rankcache.Entry{Member: fmt.Sprintf("%020d", i), Score: float64(-i)}
		}
		if err := s.Save(Snapshot{Board: "b", Members: members, TakenAt: time.Now()}, inPieces(entries)); err != nil {
			t.Fatal(err)
		}
		snap, idBytes, err := s.Head("b")
		if err != nil || snap.Members != members {
			t.Errorf("%d members: %+v, %v", members, snap, err)
		}
		if members >= 1000 && (idBytes < 20 || idBytes > 22) {
			t.Errorf("%d members: ids of %d bytes, want 20", members, idBytes)
		}
	}
}

func TestHeadOfNoGoodFile(t *testing.T) {
	s, err := New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Head("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, _, err := s.Head("../b"); !errors.Is(err, rankcache.ErrBoard) {
		t.Errorf("no board: %v", err)
	}
	if err := os.WriteFile(s.path("b"), []byte("RANKLAST"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Head("b"); !errors.Is(err, ErrCut) {
		t.Errorf("cut: %v", err)
	}
	whole := encoded(t, 100)
	if err := os.WriteFile(s.path("b"), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Head("b"); !errors.Is(err, ErrForeign) {
		t.Errorf("another board's: %v", err)
	}
	if err := os.WriteFile(s.path("1_2:3"), whole[:200], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Head("1_2:3"); !errors.Is(err, ErrCut) {
		t.Errorf("too short for its members: %v", err)
	}
}
