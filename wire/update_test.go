package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// goldenUpdates are the updates of testdata/updates.golden, line by line. The
// file is the contract between the writer and the readers of the topic: change
// it only together with the version of the event.
var goldenUpdates = []Update{
	{Board: "1_2_3", Member: "1000123", Op: OpIncr, Delta: 1, Score: 42, Run: 1838429319476737, Seq: 917, Sum: 0x0a1b2c3d4e5f, HasSum: true, Members: 5000, OrderID: "gift-1", At: 1700000000123},
	{Board: "1_2_3", Member: "1000123", Op: OpSet, Score: -0.5, Run: 1838429319476737, Seq: 918, HasSum: true, Members: 5000, OrderID: "gift-2", At: 1700000000124},
	{Board: "1_2_3", Member: "1000123", Op: OpDelete, Run: 1838429319476737, Seq: 919, OrderID: "gift-3", At: 1700000000125},
	{Board: "1_2_3", Member: "1000123", Op: OpTrim, Run: 1838429319476737, Seq: 920, Sum: 1, HasSum: true, Members: 4999, OrderID: "gift-4", At: 1700000000126},
	{Board: "1_2_3", Member: "1000123", Op: OpIncr, Delta: 2.5, Score: 1e300, OrderID: "no-seq"},
	{Board: "a.b:c-d", Member: `"ünï\"`, Op: OpIncr, Delta: -1e-7, Run: 3, Seq: 1<<54 + 1, OrderID: "<1>", At: -1},
	{Board: "1_2_3", Member: "1000123", Op: OpIncr, Delta: 1, Score: 43, Run: 1838429319476737, Seq: 921, Sum: 2, HasSum: true, Members: 4999, OrderID: "gift-5", At: 1700000000127, Data: `{"replay":"ä>?"}`},
}

func TestGoldenUpdates(t *testing.T) {
	golden, err := os.ReadFile("testdata/updates.golden")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(golden), []byte("\n"))
	if len(lines) != len(goldenUpdates) {
		t.Fatalf("%d golden lines, %d updates", len(lines), len(goldenUpdates))
	}
	for i, want := range goldenUpdates {
		if got := AppendUpdate(nil, &want); !bytes.Equal(got, lines[i]) {
			t.Errorf("line %d: wrote\n%s, golden\n%s", i+1, got, lines[i])
		}
		var got Update
		if err := DecodeUpdate(lines[i], &got); err != nil {
			t.Errorf("line %d: %v", i+1, err)
		}
		if own := new(rawUpdate).scan(string(lines[i])); own != (i < 4 || want.Data != "") { // the others have no seq, or escapes
			t.Errorf("line %d: own form %t", i+1, own)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("line %d read back (-want +got):\n%s", i+1, diff)
		}
	}
}

func TestDecodeLegacyForm(t *testing.T) {
	for _, record := range []string{
		`{"rank_id":"1_2_3","inviter_uid":88,"invitee_uid":99}`,
		`{"rank_id":"1_2_3","inviter_uid":"88","invitee_uid":"99"}`,
		`{ "rank_id" : "1_2_3", "inviter_uid": 88, "invitee_uid": "9\u0039" }`,
		`{"rank_id":"1_2_3","inviter_uid":88,"invitee_uid":99,"extra":{"deep":[1]}}`,
	} {
		want := Update{Board: "1_2_3", Member: "88", Op: OpIncr, Delta: 1, OrderID: "1_2_3_88_99"}
		var got Update
		if err := DecodeUpdate([]byte(record), &got); err != nil {
			t.Errorf("%s: %v", record, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", record, diff)
		}
	}
}

func TestDecodeUpdateRejects(t *testing.T) {
	const head = `{"v":2,"board":"b","member":"m","order":"o",`
	for record, reason := range map[string]string{
		``:                                  "json",
		`null`:                              "version",
		`[]`:                                "json",
		`<html>`:                            "json",
		head + `"op":"incr","delta":1`:      "json",
		head + `"op":"incr","delta":01}`:    "json",
		head + `"op":"incr","delta":1}}`:    "json",
		head + `"op":"incr","delta":1e999}`: "json",
		head + `"op":"incr","delta":"1"}`:   "json",
		head + "\"op\":\"\xff\"}":           "json",
		`{"v":2,"board":"b","member":"` + "\xff" + `","order":"o","op":"delete"}`:                    "json",
		`{"v":2,"board":"b","member":"` + "\xff" + `","order":"\u0041","op":"delete"}`:               "json",
		`{"v":2,"board":"b","member":"m\ud800","order":"o","op":"delete"}`:                           "json",
		`{"rank_id":"b","inviter_uid":"\udc00","invitee_uid":1}`:                                     "json",
		`{"v":1,"board":"b","member":"m","op":"incr"}`:                                               "version",
		head + `"op":"set","score":1,"seq":1,"run":1,"data64":"YQ=="}`:                               "data",
		head + `"op":"set","score":1,"seq":1,"run":1,"data64":"AA"}`:                                 "data",
		head + `"op":"set","score":1,"seq":1,"run":1,"data64":"_w"}`:                                 "data",
		head + `"op":"set","score":1,"seq":1,"run":1,"data64":"` + strings.Repeat("YWFh", 86) + `"}`: "data",
		head + `"op":"set","score":1,"data64":"YQ"}`:                                                 "data",
		head + `"op":"delete","seq":1,"run":1,"data64":"YQ"}`:                                        "data",
		head + `"op":"add","delta":1}`:                                                               "op",
		head + `"op":"trim"}`:                                                                        "op",
		head + `"op":"incr","seq":1,"run":1}`:                                                        "score",
		head + `"op":"set","score":1,"seq":1}`:                                                       "run",
		head + `"op":"set","score":1,"seq":1,"run":0,"sum":"000000000000","members":1}`:              "run",
		head + `"op":"set","score":1,"run":1}`:                                                       "run",
		head + `"op":"incr"}`:                                                                        "score",
		head + `"op":"set","delta":1}`:                                                               "score",
		`{"v":2,"board":"b","member":"m","op":"incr","delta":1}`:                                     "order",
		`{"v":2,"board":"b b","member":"m","order":"o","op":"delete"}`:                               "board",
		`{"v":2,"board":"b","member":"","order":"o","op":"delete"}`:                                  "member",
		`{"v":2,"board":"b","member":"` + strings.Repeat("m", 129) + `","order":"o","op":"delete"}`:  "member",
		`{"rank_id":"b","inviter_uid":1}`:                                                            "member",
		`{"rank_id":"b","inviter_uid":true,"invitee_uid":1}`:                                         "json",
		strings.Repeat(" ", MaxUpdateLen+1):                                                          "size",
	} {
		err := DecodeUpdate([]byte(record), &Update{})
		var bad *BadUpdate
		if !errors.As(err, &bad) || bad.Reason != reason {
			t.Errorf("%.80s: got %v, want reason %s", record, err, reason)
		}
	}
}

// FuzzDecodeUpdate checks that nothing panics, that what is accepted can be
// written and read back, and that the scanner never disagrees with encoding/json.
func FuzzDecodeUpdate(f *testing.F) {
	for i := range goldenUpdates {
		f.Add(AppendUpdate(nil, &goldenUpdates[i]))
	}
	f.Add([]byte(`{"rank_id":"1_2_3","inviter_uid":88,"invitee_uid":"99"}`))
	f.Add([]byte(`{"v":2,"board":"b","member":"m","op":"set","score":-1.5e-3,"seq":1,"more":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var fast, slow rawUpdate
		if fast.scan(string(data)) {
			if err := slow.unmarshal(data); err == nil && fast != slow {
				t.Fatalf("scanner read %+v, encoding/json %+v", fast, slow)
			} else if err != nil && json.Valid(data) && !strings.Contains(err.Error(), "Unicode") {
				t.Fatalf("scanner accepted what encoding/json rejects: %v", err)
			}
		}
		var u, again Update
		if DecodeUpdate(data, &u) != nil {
			return
		}
		if err := DecodeUpdate(AppendUpdate(nil, &u), &again); err != nil {
			t.Fatalf("accepted %+v, then rejected it: %v", u, err)
		}
		u.Delta, u.Score = usedNumbers(u)
		if u != again {
			t.Fatalf("wrote %+v, read back %+v", u, again)
		}
	})
}

// usedNumbers leaves out the numbers that the wire form does not carry.
func usedNumbers(u Update) (delta, score float64) {
	if u.Op == OpIncr {
		delta = u.Delta + 0 // -0 is written 0
	}
	if !u.Op.Removes() {
		score = u.Score + 0
	}
	return delta, score
}

func TestAppendScoreRoundTrips(t *testing.T) {
	for _, f := range []float64{0, 1, -1, 0.1, 1e15, -1e15, 1e20, 1e21, 1e-6, 1e-7, math.MaxFloat64, math.SmallestNonzeroFloat64, 1.0 / 3} {
		text := AppendScore(nil, f)
		var back float64
		if err := json.Unmarshal(text, &back); err != nil || back != f {
			t.Errorf("%v written %s, read %v (%v)", f, text, back, err)
		}
	}
	if got := string(AppendScore(nil, math.Copysign(0, -1))); got != "0" {
		t.Errorf("-0 written %s, want 0", got)
	}
}

func BenchmarkDecodeUpdate(b *testing.B) {
	data := AppendUpdate(nil, &goldenUpdates[0])
	older := []byte(`{"rank_id":"1_2_3","inviter_uid":88,"invitee_uid":99}`)
	for name, record := range map[string][]byte{"current": data, "older": older} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(record)))
			b.ReportAllocs()
			var u Update
			for b.Loop() {
				if err := DecodeUpdate(record, &u); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecodeUpdateEncodingJSON(b *testing.B) {
	data := AppendUpdate(nil, &goldenUpdates[0])
	b.ReportAllocs()
	var w rawUpdate
	for b.Loop() {
		if err := w.unmarshal(data); err != nil {
			b.Fatal(err)
		}
	}
}
