package hotkey

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"rankcache/wire"
)

func TestVerdictComesBackUnchanged(t *testing.T) {
	v := Verdict{V: verdictVersion, At: 1_700_000_000_123, Source: "tencent", Poller: "pod-1",
		Boards: []BoardCount{{"1_2_3", 900}, {"a:b", 1}}, Ignored: 3}
	got, err := DecodeVerdict(v.Encode())
	if err != nil || !reflect.DeepEqual(got, v) {
		t.Errorf("%+v, %v; want %+v", got, err, v)
	}
	if !got.same(v) {
		t.Error("a verdict that was read is not the same as the one that was written")
	}
}

func TestBadVerdicts(t *testing.T) {
	for _, data := range []string{
		``, `null`, `{}`, `[]`, `{"v":1}`, `{"v":2,"at":1,"boards":[]}`, `{"v":1,"at":1,"boards":[{"board":""}]}`,
		`{"v":1,"at":1,"boards":[{"board":"a b"}]}`, `{"v":1,"at":1,"boards":[{"board":"a","count":1.5}]}`, `{"v":1,"at":1,"boards":`,
		`{"v":1,"at":1,"boards":[` + strings.Repeat(`{"board":"a"},`, maxVerdictBoards) + `{"board":"a"}]}`,
		`{"v":1,"at":1,"source":"` + strings.Repeat("x", maxVerdictBytes) + `"}`,
	} {
		if v, err := DecodeVerdict([]byte(data)); err == nil {
			t.Errorf("%.60s is read as %+v", data, v)
		}
	}
}

func FuzzDecodeVerdict(f *testing.F) {
	f.Add(Verdict{At: 5, Boards: []BoardCount{{"1_2_3", 900}}}.Encode())
	f.Add([]byte(`{"v":1,"at":9223372036854775807,"boards":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := DecodeVerdict(data)
		if err != nil {
			return
		}
		for _, b := range v.Boards {
			if b.Board.Check() != nil {
				t.Errorf("board %q is accepted", b.Board)
			}
		}
		again, err := DecodeVerdict(v.Encode())
		if err != nil || !again.same(v) || !slices.Equal(again.Boards, v.Boards) {
			t.Errorf("%+v becomes %+v, %v", v, again, err)
		}
	})
}

// A key that is no board's, or a companion of one, is not a hot board.
func TestSampleKnowsBoardsByTheirKeys(t *testing.T) {
	var s HotBoards
	names := wire.DefaultNames()
	for _, key := range []string{"1_2_3", "{1_2_3}:meta", names.RoomKey("88"), names.HotKey("x"), "with blank", ""} {
		s.addKey(names, key, 1)
	}
	if len(s.Boards) != 1 || s.Boards[0].Board != "1_2_3" || s.Ignored != 5 {
		t.Errorf("%+v, want board 1_2_3 and 5 ignored", s)
	}
}
