package wire_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"rankcache"
	"rankcache/wire"
)

func someLadder(rungs int) *rankcache.Ladder {
	l := &rankcache.Ladder{Run: 1764150000000 << 10, Seq: 1 << 40, Changes: 3, Members: 1_000_000}
	for i := range rungs {
		l.Rungs = append(l.Rungs, rankcache.Rung{Entry: rankcache.Entry{Member: fmt.Sprint("m", 199_999-i), Score: float64(1000 - i/2)}, Rank: 1 + i*i/3 + i})
	}
	return l
}

func TestLadder(t *testing.T) {
	for _, rungs := range []int{1, 2, 900} {
		want := someLadder(rungs)
		value := string(wire.AppendLadder(nil, want))
		if got, err := wire.ParseLadder(value); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d rungs: %+v, %v", rungs, got, err)
		}
	}
	names := wire.DefaultNames()
	for _, key := range []string{names.LadderKey("b"), names.LadderLeaseKey("b")} {
		if board, ok := names.BoardOfKey(key); ok {
			t.Errorf("%s is the board %s", key, board)
		}
	}
}

func TestBadLadders(t *testing.T) {
	good := string(wire.AppendLadder(nil, someLadder(20)))
	bad := map[string]string{"empty": "", "cut": good[:len(good)-9], "longer": good + "x", "another version": "\x02" + good[1:], "4 MiB": strings.Repeat("\x01", 4<<20)}
	for i := range len(good) {
		bad[fmt.Sprint("bit at ", i)] = good[:i] + string(good[i]^0x10) + good[i+1:]
	}
	for what, change := range map[string]func(l *rankcache.Ladder){
		"no rungs":           func(l *rankcache.Ladder) { l.Rungs = nil },
		"too many":           func(l *rankcache.Ladder) { *l = *someLadder(rankcache.MaxRungs + 1); l.Members = math.MaxUint32 },
		"NaN":                func(l *rankcache.Ladder) { l.Rungs[3].Score = math.NaN() },
		"scores that rise":   func(l *rankcache.Ladder) { l.Rungs[3].Score = 5000 },
		"members that rise":  func(l *rankcache.Ladder) { l.Rungs[3].Member = "z" },
		"ranks that fall":    func(l *rankcache.Ladder) { l.Rungs[3].Rank = 1 },
		"rank 0":             func(l *rankcache.Ladder) { l.Rungs[0].Rank = 0 },
		"beyond the members": func(l *rankcache.Ladder) { l.Members = 19 },
		"no member":          func(l *rankcache.Ladder) { l.Rungs[0].Member = "" },
	} {
		l := someLadder(20)
		change(l)
		bad[what] = string(wire.AppendLadder(nil, l))
	}
	for what, value := range bad {
		if l, err := wire.ParseLadder(value); !errors.Is(err, wire.ErrLadder) || l != nil {
			t.Errorf("%s: %+v, %v", what, l, err)
		}
	}
}

func FuzzLadder(f *testing.F) {
	f.Add(string(wire.AppendLadder(nil, someLadder(20))), "m199990", 995.0, 1_000_000)
	f.Add("\x01", "", 0.0, 1)
	f.Fuzz(func(t *testing.T, value, member string, score float64, members int) {
		l, err := wire.ParseLadder(value)
		if err != nil || members < 1 {
			return
		}
		for _, dir := range []rankcache.Direction{rankcache.Descending, rankcache.Ascending} {
			if rank, within := l.Place(rankcache.Entry{Member: member, Score: score}, dir, members); rank < 1 || rank > members || within < 0 {
				t.Errorf("rank %d of %d, within %d", rank, members, within)
			}
			if a := l.Ahead(score, rankcache.ScoreInteger, dir, members); a.Members < 0 || a.Members >= members {
				t.Errorf("%d of %d ahead", a.Members, members)
			}
		}
	})
}
