package wire_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/wire"
)

func someStates() []wire.BoardState {
	var all []wire.BoardState
	for i := range 20 {
		id := fmt.Sprint(i, "_2_3")
		state := rankcache.State{Run: 1764150000000<<10 + uint64(i), Seq: uint64(i) << 30, Sum: uint64(i) * 0x0fff_ffff_fff, HasSum: i != 3}
		if i == 3 {
			state.Sum = 0
		}
		all = append(all, wire.BoardState{Board: wire.StateKey(id), State: state, Members: i * 1000, Life: wire.Life(i % 4), Primed: i%5 == 0})
	}
	return all
}

func TestStates(t *testing.T) {
	value := string(wire.AppendStates(nil, "crs-1", 7, 300*time.Millisecond, someStates()))
	if want := 25 + 20*31 + 4; len(value) != want {
		t.Errorf("%d bytes, want %d", len(value), want)
	}
	s, err := wire.ParseStates(value, "crs-1")
	if err != nil || s.Serial != 7 || s.Every != 300*time.Millisecond || s.Len() != 20 {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, want := range someStates() {
		if got, ok := s.Of(want.Board); !ok || got != want {
			t.Errorf("got %+v, %v, want %+v", got, ok, want)
		}
	}
	if _, ok := s.Of(wire.StateKey("another")); ok {
		t.Error("a board that is not in the value")
	}
	if serial, ok := wire.ParseSerial(value[wire.SerialFirst : wire.SerialLast+1]); !ok || serial != 7 {
		t.Errorf("serial %d, %v", serial, ok)
	}
}

// Two boards that can't be told apart, and what does not fit, are left out.
func TestStatesLeaveOut(t *testing.T) {
	boards := []wire.BoardState{{Board: 1, State: rankcache.State{Run: 1, Seq: 1}}, {Board: 1, State: rankcache.State{Run: 1, Seq: 2}},
		{Board: 2, State: rankcache.State{Run: 1 << 56}}, {Board: 3, State: rankcache.State{Run: 1, Seq: 3}}}
	s, err := wire.ParseStates(string(wire.AppendStates(nil, "i", 1, time.Second, boards)), "i")
	if got, ok := s.Of(3); err != nil || s.Len() != 1 || !ok || got.Seq != 3 {
		t.Errorf("%d boards, %+v, %v", s.Len(), got, err)
	}
}

func TestBadStates(t *testing.T) {
	good := string(wire.AppendStates(nil, "i", 7, time.Second, someStates()))
	bad := map[string]string{"empty": "", "cut": good[:len(good)-31], "longer": good + strings.Repeat("x", 31), "another version": "\x02" + good[1:],
		"another instance": string(wire.AppendStates(nil, "other", 7, time.Second, someStates())), "64 MiB": strings.Repeat("\x01", 64<<20),
		"no interval": string(wire.AppendStates(nil, "i", 7, 0, nil))}
	for i := range len(good) {
		bad[fmt.Sprint("bit at ", i)] = good[:i] + string(good[i]^0x10) + good[i+1:]
	}
	for what, value := range bad {
		if s, err := wire.ParseStates(value, "i"); !errors.Is(err, wire.ErrStates) || s.Len() != 0 {
			t.Errorf("%s: %d boards, %v", what, s.Len(), err)
		}
	}
}

func FuzzStates(f *testing.F) {
	f.Add(string(wire.AppendStates(nil, "i", math.MaxUint64, time.Second, someStates())), uint64(5))
	f.Add("\x01", uint64(0))
	f.Fuzz(func(t *testing.T, value string, key uint64) {
		s, err := wire.ParseStates(value, "i")
		if err != nil {
			return
		}
		if b, ok := s.Of(key); ok && (b.Life > wire.LifeFinal || b.Sum > wire.SumMask) {
			t.Errorf("%+v", b)
		}
	})
}
