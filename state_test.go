package rankcache

import (
	"errors"
	"math"
	"testing"
)

func TestStateIsReadAsItIsWritten(t *testing.T) {
	for text, want := range map[string]State{
		"1838429319476737-917-0a1b2c3d4e5f": {Run: 1838429319476737, Seq: 917, Sum: 0x0a1b2c3d4e5f, HasSum: true},
		"0-0-":                              {},
		"1-2-000000000000":                  {Run: 1, Seq: 2, HasSum: true},
	} {
		if got, err := ParseState(text); err != nil || got != want || got.String() != text || string(got.AppendState([]byte("x"))) != "x"+text {
			t.Errorf("%s: got %v (%+v), %v", text, got, got, err)
		}
	}
}

func TestNoStateIsLongerThanItsLimit(t *testing.T) {
	longest := State{Run: math.MaxUint64, Seq: math.MaxUint64, Sum: 1<<sumBits - 1, HasSum: true}.String()
	if len(longest) != MaxStateLen {
		t.Errorf("%s has %d bytes, want %d", longest, len(longest), MaxStateLen)
	}
}

func TestOnlyTheWrittenFormIsAState(t *testing.T) {
	for _, text := range []string{"", "-", "1-2", "1-2-3", "01-2-", "1-2-0A1B2C3D4E5F", "1-2-0a1b2c3d4e5f0", "1-2-0a1b2c3d4e5", "a-1-", "1--", "1-2--", "+1-2-"} {
		if got, err := ParseState(text); !errors.Is(err, ErrState) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestOnlyKnownSumsAreTheSame(t *testing.T) {
	known := State{Run: 1, Seq: 2, HasSum: true}
	if !known.SameSum(known) || known.SameSum(State{Run: 1, Seq: 2}) || (State{}).SameSum(State{}) {
		t.Error("a sum that is unknown is the same as another")
	}
}
