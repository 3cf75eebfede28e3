package writer

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/wire"
)

func TestDecodeCommand(t *testing.T) {
	for data, want := range map[string]Command{
		`{"order":"o1","board":"1_2_3","room":"88","member":"m","op":"incr","delta":1.5,"at":7}`: {Board: "1_2_3", Room: "88", Member: "m", Op: wire.OpIncr, Number: 1.5, OrderID: "o1", At: 7},
		`{"order":"o1","board":"1_2_3","member":"m","op":"set","score":-0.0,"delta":4}`:          {Board: "1_2_3", Member: "m", Op: wire.OpSet, Number: 0, OrderID: "o1", At: 99},
		`{"order":"é","board":"a:b","member":"m n","op":"delete"}`:                               {Board: "a:b", Member: "m n", Op: wire.OpDelete, Number: 0, OrderID: "é", At: 99},
		`{"rank_id":"1_2_3","inviter_uid":"7","invitee_uid":8}`:                                  {Board: "1_2_3", Member: "7", Op: wire.OpIncr, Number: 1, OrderID: "1_2_3_7_8", At: 99},
		`{"rank_id":12,"inviter_uid":7,"invitee_uid":"8","at":3}`:                                {Board: "12", Member: "7", Op: wire.OpIncr, Number: 1, OrderID: "12_7_8", At: 3},
		`{"order":"o1","class":"gift","dims":{"zone":"7"},"member":"m","op":"delete"}`:           {Class: "gift", Dims: map[string]string{"zone": "7"}, Member: "m", Op: wire.OpDelete, OrderID: "o1", At: 99},
		`{"order":"o1","board":"b","class":null,"dims":{},"member":"m","op":"delete"}`:           {Board: "b", Dims: map[string]string{}, Member: "m", Op: wire.OpDelete, OrderID: "o1", At: 99},
	} {
		c, err := DecodeCommand([]byte(data), 99)
		must(t, err)
		equal(t, data, *c, want)
		if math.Signbit(c.Number) {
			t.Errorf("%s: -0", data)
		}
	}
}

// TestUpdatesAreCommands: the ledger posts its updates, all fields included.
func TestUpdatesAreCommands(t *testing.T) {
	u := wire.LedgerUpdate{Class: "c", Dims: map[string]string{"zone": "7"}, Tag: "20261122", Update: wire.Update{Member: "m", Op: wire.OpIncr, Delta: 1, Score: 2.5,
		Form: rankcache.ScoreInteger, OrderID: "o1", At: 7, Run: 1, Seq: 2, Sum: 3, HasSum: true, Members: 4}}
	c, err := DecodeCommand(wire.AppendLedgerUpdate(nil, &u), 99)
	must(t, err)
	equal(t, "command", *c, Command{Class: "c", Dims: u.Dims, Member: "m", Op: wire.OpIncr, Number: 1, OrderID: "o1", At: 7})
}

func TestDecodeCommandRejects(t *testing.T) {
	long := strings.Repeat("x", 201)
	for data, reason := range map[string]string{
		``:    "json",
		`[]`:  "json",
		`{}x`: "json",
		`{"order":"o","board":"b","member":"` + "\xff" + `","op":"delete"}`:               "json",
		`{"order":"o","board":"b","member":"m\ud800","op":"delete"}`:                      "json",
		`{"order":"o","class":"c","dims":{"\udc00":"7"},"member":"m","op":"delete"}`:      "json",
		`{"rank_id":"b","inviter_uid":"m\ud800","invitee_uid":"n"}`:                       "json",
		`{"order":"o","board":"b","member":"m","op":"delete","att":7}`:                    "field",
		`{"order":"o","board":"b","member":"m","op":"delete","At":7}`:                     "field",
		`{"order":"o","board":"b","member":"m","op":"delete","at":7,"at":8}`:              "field",
		`{"order":"o","class":"c","dims":{"z":"7","z":"8"},"member":"m","op":"delete"}`:   "field",
		`{"rank_id":"b","inviter_uid":"m","invitee_uid":"n","inviter_uid":"o"}`:           "field",
		`{"rank_id":"b","inviter_uid":"m","invitee_uid":"n","invitees_uid":"o"}`:          "field",
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
		`{"order":"o","board":"{}b","member":"m","op":"delete"}`:                          "board",
		`{"order":"o","board":"` + long + `","member":"m","op":"delete"}`:                 "board",
		`{"order":"o","board":123,"member":"m","op":"delete"}`:                            "board",
		`{"order":"o","board":"b","member":"","op":"delete"}`:                             "member",
		`{"order":"o","board":"b","member":"a\u0000b","op":"delete"}`:                     "member",
		`{"order":"o","board":"b","member":"` + long + `","op":"delete"}`:                 "member",
		`{"board":"b","member":"m","op":"delete"}`:                                        "order",
		`{"order":"o\n","board":"b","member":"m","op":"delete"}`:                          "order",
		`{"order":"o","class":7,"member":"m","op":"delete"}`:                              "class",
		`{"order":"o","class":"c","dims":{"zone":7},"member":"m","op":"delete"}`:          "dims",
		`{"order":"o","class":"c","dims":["7"],"member":"m","op":"delete"}`:               "dims",
		`{"order":"o","board":"b","class":"c","member":"m","op":"delete"}`:                "board_and_class",
		`{"rank_id":"b","class":"c","inviter_uid":"m","invitee_uid":"n"}`:                 "board_and_class",
		`{"order":"o","board":"b","dims":{"zone":"7"},"member":"m","op":"delete"}`:        "bad_dims",
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
		`{"order":"o1","class":"gift-minute","dims":{"zone":"7"},"member":"m","op":"incr","delta":1,"at":1795345200000}`,
		`{"order":"o1","class":"fans","dims":{"app":"7","host":""},"member":"m","op":"set","score":1}`,
		`{"order":"o1","board":"fans_7_88","class":"fans","dims":{},"member":"m","op":"delete"}`,
	} {
		f.Add([]byte(seed))
	}
	classes := classFile(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := DecodeCommand(data, 99)
		if err == nil {
			_, _, err = resolve(c, classes, time.UnixMilli(c.At))
		}
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
