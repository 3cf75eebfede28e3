package wire_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rankcache"
	"rankcache/wire"
)

func TestReads(t *testing.T) {
	boards := []wire.BoardReads{{Board: "b", Rate: 45}, {Board: "a", Rate: 1e12}}
	got, err := wire.ParseReads(string(wire.AppendReads(nil, 7, boards)))
	if want := (wire.Reads{At: 7, Boards: []wire.BoardReads{{Board: "a", Rate: 1e12}, {Board: "b", Rate: 45}}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// The boards that are read most are reported, and the longest report can be read.
func TestReadsLeaveOut(t *testing.T) {
	var boards []wire.BoardReads
	for i := range 3 * wire.MaxReads {
		boards = append(boards, wire.BoardReads{Board: rankcache.BoardID(fmt.Sprintf("%0*d", rankcache.MaxBoardLen, i)), Rate: math.MaxUint64 - uint64(i)})
	}
	value := string(wire.AppendReads(nil, 7, slices.Clone(boards)))
	got, err := wire.ParseReads(value)
	if err != nil || len(value) != wire.MaxReadsLen || !slices.Equal(got.Boards, boards[:wire.MaxReads]) {
		t.Errorf("%d bytes, %v, %v", len(value), got.Boards, err)
	}
}

func TestBadReads(t *testing.T) {
	good := string(wire.AppendReads(nil, 7, []wire.BoardReads{{Board: "a", Rate: 300}, {Board: "b", Rate: 2}}))
	longer := good
	for i := range wire.MaxReads {
		longer += fmt.Sprintf("\x01\x03c%02d", i)
	}
	for what, value := range map[string]string{"empty": "", "cut": good[:len(good)-1], "cut in a number": good[:10], "another version": "\x02" + good[1:], "64 MiB": strings.Repeat("\x01", 64<<20),
		"no id": good[:9] + "\x01\x00", "no board's id": good[:9] + "\x01\x03a b", "twice": good + "\x01\x01b", "unsorted": good + "\x01\x01a", "65 boards": longer,
		"a length of 2^63": good + "\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "endless number": good[:9] + strings.Repeat("\xff", 11)} {
		if r, err := wire.ParseReads(value); !errors.Is(err, wire.ErrReads) || len(r.Boards) != 0 {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
}

func FuzzReads(f *testing.F) {
	f.Add(string(wire.AppendReads(nil, math.MaxUint64, []wire.BoardReads{{Board: "a", Rate: 1e12}, {Board: "b", Rate: 2}})))
	f.Add("\x01")
	f.Fuzz(func(t *testing.T, value string) {
		r, err := wire.ParseReads(value)
		if err != nil {
			return
		}
		again, err := wire.ParseReads(string(wire.AppendReads(nil, r.At, slices.Clone(r.Boards))))
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%+v becomes %+v, %v", r, again, err)
		}
	})
}
