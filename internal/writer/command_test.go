package writer

import (
	"errors"
	"math"
	"strings"
	"testing"

	"rankcache/wire"
)

func TestDecodeCommand(t *testing.T) {
	for data, want := range map[string]Command{
		`{"order":"o1","board":"1_2_3","room":"88","member":"m","op":"incr","delta":1.5,"at":7}`:     {"1_2_3", "88", "m", wire.OpIncr, 1.5, "o1", 7},
		`{"order":"o1","board":"1_2_3","member":"m","op":"set","score":-0.0,"delta":4,"other":[{}]}`: {"1_2_3", "", "m", wire.OpSet, 0, "o1", 99},
		`{"order":"é","board":"a:b","member":"m n","op":"delete"}`:                                   {"a:b", "", "m n", wire.OpDelete, 0, "é", 99},
		`{"rank_id":"1_2_3","inviter_uid":"7","invitee_uid":8}`:                                      {"1_2_3", "", "7", wire.OpIncr, 1, "1_2_3_7_8", 99},
		`{"rank_id":12,"inviter_uid":7,"invitee_uid":"8","at":3}`:                                    {"12", "", "7", wire.OpIncr, 1, "12_7_8", 3},
	} {
		c, err := DecodeCommand([]byte(data), 99)
		must(t, err)
		equal(t, data, *c, want)
		if math.Signbit(c.Number) {
			t.Errorf("%s: -0", data)
		}
	}
}

func TestDecodeCommandRejects(t *testing.T) {
	long := strings.Repeat("x", 201)
	for data, reason := range map[string]string{
		``:    "json",
		`[]`:  "json",
		`{}x`: "json",
		`{"order":"o","board":"b","member":"` + "\xff" + `","op":"delete"}`:               "json",
		`{"order":"` + strings.Repeat("x", MaxCommandLen) + `"}`:                          "size",
		`{"order":"o","board":"b","member":"m"}`:                                          "op",
		`{"order":"o","board":"b","member":"m","op":"double"}`:                            "op",
		`{"order":"o","board":"b","member":"m","op":7}`:                                   "op",
		`{"order":"o","board":"b","member":"m","op":"incr"}`:                              "delta",
		`{"order":"o","board":"b","member":"m","op":"incr","score":1}`:                    "delta",
		`{"order":"o","board":"b","member":"m","op":"incr","delta":1e999}`:                "delta",
		`{"order":"o","board":"b","member":"m","op":"incr","delta":"1"}`:                  "delta",
		`{"order":"o","board":"b","member":"m","op":"incr","delta":NaN}`:                  "json",
		`{"order":"o","board":"b","member":"m","op":"set","delta":1}`:                     "score",
		`{"order":"o","board":"b","member":"m","op":"set","score":-1e999}`:                "score",
		`{"order":"o","board":"","member":"m","op":"delete"}`:                             "board",
		`{"order":"o","board":"a b","member":"m","op":"delete"}`:                          "board",
		`{"order":"o","board":"{b}","member":"m","op":"delete"}`:                          "board",
		`{"order":"o","board":"` + long + `","member":"m","op":"delete"}`:                 "board",
		`{"order":"o","board":123,"member":"m","op":"delete"}`:                            "board",
		`{"order":"o","board":"b","member":"","op":"delete"}`:                             "member",
		`{"order":"o","board":"b","member":"a\u0000b","op":"delete"}`:                     "member",
		`{"order":"o","board":"b","member":"` + long + `","op":"delete"}`:                 "member",
		`{"board":"b","member":"m","op":"delete"}`:                                        "order",
		`{"order":"o\n","board":"b","member":"m","op":"delete"}`:                          "order",
		`{"order":"o","board":"b","room":"` + long + `","member":"m","op":"delete"}`:      "room",
		`{"order":"o","board":"b","member":"m","op":"delete","at":-1}`:                    "at",
		`{"order":"o","board":"b","member":"m","op":"delete","at":1e30}`:                  "at",
		`{"rank_id":"b","inviter_uid":"m"}`:                                               "member",
		`{"rank_id":"a b","inviter_uid":"m","invitee_uid":"n"}`:                           "board",
		`{"rank_id":"b","inviter_uid":"` + long[:120] + `","invitee_uid":"` + long + `"}`: "order",
	} {
		_, err := DecodeCommand([]byte(data), 99)
		refusal, ok := errors.AsType[*Refusal](err)
		if !ok || refusal.Reason != reason || refusal.Err == nil {
			t.Errorf("%.80s: %v, want reason %s", data, err, reason)
		}
	}
}

// FuzzDecodeCommand looks for accepted commands whose update could not be decoded.
func FuzzDecodeCommand(f *testing.F) {
	for _, seed := range []string{
		`{"order":"o1","board":"1_2_3","room":"88","member":"m","op":"incr","delta":1.5,"at":7}`,
		`{"order":"o1","board":"1_2_3","member":"m","op":"set","score":-0.0}`,
		`{"order":"\u00e9","board":"a:b","member":"m\ud800","op":"delete"}`,
		`{"rank_id":12,"inviter_uid":7,"invitee_uid":"8"}`, `{"RANK_ID":null}`, `{"rank_id":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := DecodeCommand(data, 99)
		if err != nil {
			if refusal, ok := errors.AsType[*Refusal](err); !ok || refusal.Reason == "" || refusal.Err == nil {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		u := wire.Update{Board: c.Board, Member: c.Member, Op: c.Op, OrderID: c.OrderID, At: c.At, Run: 1, Seq: 1}
		switch c.Op {
		case wire.OpIncr:
			u.Delta, u.Score = c.Number, c.Number
		case wire.OpSet:
			u.Score = c.Number
		}
		var back wire.Update
		if err := wire.DecodeUpdate(wire.AppendUpdate(nil, &u), &back); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		equal(t, string(data), back, u)
	})
}
