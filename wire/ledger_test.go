package wire

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rankcache"
)

// goldenLedger are the updates of testdata/rank_updates.golden, line by line: the contract
// with everything that reads the ledger's topic.
var goldenLedger = []LedgerUpdate{
	{Update: goldenUpdates[0], Class: "gift-half-hour", Dims: map[string]string{"zone": "7", "app": "x"}, Tag: "20261122-17"},
	{Update: goldenUpdates[1], Class: "gift-ever", Dims: map[string]string{"zone": "7"}},
	{Update: goldenUpdates[2]},
	{Update: goldenUpdates[5], Class: "c", Dims: map[string]string{}, Tag: "2026W47"},
	{Update: tied(10, 3, false), Class: "c", Dims: map[string]string{}, Tag: "2026W47"},
	{Update: tied(-7, 917, true)},
	{Update: lowest(72500, 3), Class: "laps", Dims: map[string]string{}},
	{Update: by(goldenUpdates[0], `{"guild":"g\"7","land":"fr"}`), Class: "c", Dims: map[string]string{}, Tag: "2026W47"},
	{Update: with(goldenUpdates[0], "replay-9f86", "replay-9f86"), Class: "laps", Dims: map[string]string{}},
	{Update: with(lowest(72500, 3), "ä", ""), Class: "laps", Dims: map[string]string{}},
	{Update: with(goldenUpdates[0], "", "none"), Class: "laps", Dims: map[string]string{}},
	{Update: with(goldenUpdates[0], "kept"), Class: "laps", Dims: map[string]string{}},
	{Update: veiled(tied(10, 3, false), OpHide, Hiding{Serial: 7, Hidden: true}), Class: "c", Dims: map[string]string{}},
	{Update: veiled(goldenUpdates[0], OpIncr, Hiding{Serial: 7, Hidden: true})},
	{Update: veiled(goldenUpdates[0], OpHide, Hiding{Serial: 7, Hidden: true, Bare: true}), Class: "c", Dims: map[string]string{}},
	{Update: veiled(goldenUpdates[0], OpDelete, Hiding{Serial: 7, Hidden: true, Bare: true})},
	{Update: veiled(goldenUpdates[0], OpRestore, Hiding{Serial: 8})},
	{Update: veiled(goldenUpdates[0], OpDelete, Hiding{Serial: 8, Bare: true})},
	{Update: veiled(lowest(72500, 3), OpIncr, Hiding{Serial: 8}), Class: "laps", Dims: map[string]string{}},
	{Update: veiled(Update{Board: "1_2_3", Member: "1000123", Run: 1838429319476737, Seq: 917, HasSum: true, Sum: 0x0a1b2c3d4e5f, Members: 5000, OrderID: "gift-1", At: 1700000000123}, OpForget, Hiding{}), Class: "c", Dims: map[string]string{}},
}

// veiled is an update of a member that is or was hidden, by an operation.
func veiled(u Update, op Op, v Hiding) Update {
	if u.Op, u.Hiding = op, v; !op.HasDelta() {
		u.Delta = 0
	}
	if v.Bare {
		u.Score = 0
	}
	return u
}

// with gives a member data, and its command, if given has any.
func with(u Update, data string, given ...string) Update {
	u.Data = data
	for _, text := range given {
		u.Given = "\x00" + text
	}
	return u
}

func by(u Update, groups string) Update {
	u.By = groups
	return u
}

// lowest is an update of a board on which the lowest score is the best, and the first comer before others.
func lowest(score float64, reach uint64) Update {
	u := goldenUpdates[0]
	u.Form = rankcache.ScoreInteger | rankcache.ScoreLowest
	u.Score = TieScore(u.Form.Raw(score), reach, false)
	return u
}

// tied is an update of a board that ranks ties, whose member came to a score at a seq.
func tied(score float64, reach uint64, last bool) Update {
	u := goldenUpdates[0]
	u.Score, u.Form = TieScore(score, reach, last), rankcache.ScoreInteger
	return u
}

func TestGoldenLedgerUpdates(t *testing.T) {
	golden, err := os.ReadFile("testdata/rank_updates.golden")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(golden), []byte("\n"))
	if len(lines) != len(goldenLedger) {
		t.Fatalf("%d golden lines, %d updates", len(lines), len(goldenLedger))
	}
	for i, want := range goldenLedger {
		if got := AppendLedgerUpdate(nil, &want); !bytes.Equal(got, lines[i]) {
			t.Errorf("line %d: wrote\n%s, golden\n%s", i+1, got, lines[i])
		}
		for _, line := range [][]byte{lines[i], append(lines[i][:len(lines[i])-1:len(lines[i])-1], `,"later":{"a":[1]}}`...)} {
			var got LedgerUpdate
			if err := DecodeLedgerUpdate(line, &got); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s read back (-want +got):\n%s", line, diff)
			}
		}
	}
}

// TestDecodeLedgerUpdateOfOlderWriters: records of writers that did not know of raw scores have one as score. A tie-break
// is told by the seqs that the board has had.
func TestDecodeLedgerUpdateOfOlderWriters(t *testing.T) {
	number := goldenUpdates[0]
	number.Delta, number.Score = 0.1, 4999.999999999713 // a sum of many
	half := number
	half.Score = 5000.5
	for _, want := range []Update{goldenUpdates[0], goldenUpdates[1], goldenUpdates[2], tied(10, 3, false), tied(10, 917, true), tied(-7, 917, false), tied(1<<31, 12, true), number, half} {
		var got LedgerUpdate
		if err := DecodeLedgerUpdate(AppendUpdate(nil, &want), &got); err != nil || got.Update != want {
			t.Errorf("%v: read as %+v, want %+v", err, got.Update, want)
		}
	}
}

// TestShownUpdate: who has posted a command reads the score that is shown.
func TestShownUpdate(t *testing.T) {
	u := tied(10, 3, false)
	for want, got := range map[string][]byte{
		`"v":2,`:                               AppendShownUpdate(nil, &u),
		`"score":10,"raw":10.999999999996362,`: AppendShownUpdate(nil, &u),
		`"score":42,"run"`:                     AppendShownUpdate(nil, &goldenUpdates[0]),
	} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestDecodeLedgerUpdateRejects(t *testing.T) {
	const head = `{"v":2,"board":"b","member":"m","op":"incr","delta":1,"score":1`
	for record, reason := range map[string]string{
		head + `,"order":"o","at":1}`:                                                                         "run",
		head + `,"run":1,"seq":9223372036854775808}`:                                                          "run",
		head + `,"run":1,"seq":1,"class":7}`:                                                                  "json",
		head + `,"run":1,"seq":1,"class":"c","dims":{"a":1}}`:                                                 "json",
		head + `,"run":1,"seq":1,"class":"c","dims":{"a":"\ud800"},"tag":""}`:                                 "json",
		head + `,"run":1,"seq":1,"class":"c","dims":{"a":"1","a":"2"},"tag":""}`:                              "json",
		head + `,"run":1,"seq":1,"class":"c","more":1,"dims":{"a":"\ud800"}}`:                                 "json",
		head + `,"run":1,"seq":1,"class":"c"}}`:                                                               "json",
		head + `,"run":1,"seq":1,"class":"` + strings.Repeat("c", 41) + `"}`:                                  "class",
		head + `,"run":1,"seq":1,"class":"c","tag":"` + strings.Repeat("1", 41) + `"}`:                        "class",
		head + `,"run":1,"seq":1,"more":"` + strings.Repeat("1", MaxUpdateLen) + `"}`:                         "size",
		strings.Replace(head, `"v":2`, `"v":4`, 1) + `,"run":1,"seq":1,"class":"c"}`:                          "version",
		head + `,"raw":1,"run":1,"seq":1,"class":"c","given64":"AA"}`:                                         "data",
		head + `,"raw":1,"run":1,"seq":1,"class":"c","given64":"?"}`:                                          "data",
		`{"v":2,"board":"b","member":"m","op":"delete","run":1,"seq":1,"class":"c","dims":{},"given64":"YQ"}`: "data",
		`{"v":3,"class":"c"}`: "version",
		strings.Replace(head, `"v":2`, `"v":5`, 1) + `,"run":1,"seq":1}`:                           "version",
		strings.Replace(head, `"v":2`, `"v":5`, 1) + `,"run":1,"seq":1,"veil":"7 1"}`:              "",
		strings.Replace(head, `"v":2`, `"v":5`, 1) + `,"run":1,"seq":1,"veil":"7 2"}`:              "veil",
		strings.Replace(head, `"v":2`, `"v":5`, 1) + `,"run":1,"seq":1,"veil":"7 -"}`:              "veil",
		strings.Replace(head, `"v":2`, `"v":5`, 1) + `,"run":1,"seq":1,"veil":"0"}`:                "veil",
		strings.Replace(head, `"v":2`, `"v":5`, 1) + `,"run":1,"seq":1,"veil":"9007199254740992"}`: "veil",
		strings.Replace(head, `"v":2`, `"v":5`, 1) + `,"run":1,"seq":1,"data64":"YQ","veil":"7"}`:  "veil",
		`{"v":5,"board":"b","member":"m","op":"trim","run":1,"seq":1,"veil":"7"}`:                  "veil",
		`{"v":5,"board":"b","member":"m","op":"restore","run":1,"seq":1,"veil":"7"}`:               "",
		`{"v":5,"board":"b","member":"m","op":"restore","run":1,"seq":1,"veil":"7 1"}`:             "veil",
		`{"v":5,"board":"b","member":"m","op":"set","run":1,"seq":1,"veil":"7 -"}`:                 "score",
		`{"v":2,"board":"b","member":"m","op":"hide","score":1,"run":1,"seq":1,"veil":"7 1"}`:      "op",
		head + `,"raw":1.5,"run":1,"seq":1}`:                                                       "",
		head + `,"raw":2.5,"run":1,"seq":1}`:                                                       "score",
		head + `,"raw":0.5,"run":1,"seq":1}`:                                                       "score",
	} {
		err := DecodeLedgerUpdate([]byte(record), new(LedgerUpdate))
		if bad, ok := errors.AsType[*BadUpdate](err); ok != (reason != "") || ok && bad.Reason != reason {
			t.Errorf("%.150s: %v, want %s", record, err, reason)
		}
	}
}

// A member may look like the beginning of the class.
func TestDecodeLedgerUpdateWithAMemberLikeAClass(t *testing.T) {
	want := LedgerUpdate{Update: goldenUpdates[0]}
	want.Member = `a,"class":"x`
	for _, class := range []string{"", "c"} {
		want.Class = class
		if class != "" {
			want.Dims = map[string]string{}
		}
		var got LedgerUpdate
		if err := DecodeLedgerUpdate(AppendLedgerUpdate(nil, &want), &got); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%v: %s", err, cmp.Diff(want, got))
		}
	}
}

func FuzzDecodeLedgerUpdate(f *testing.F) {
	for _, u := range goldenLedger {
		f.Add(AppendLedgerUpdate(nil, &u))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var u, again LedgerUpdate
		if DecodeLedgerUpdate(data, &u) != nil {
			return
		}
		if err := DecodeLedgerUpdate(AppendLedgerUpdate(nil, &u), &again); err != nil {
			t.Fatalf("%q: what was read can't be written and read: %v", data, err)
		}
	})
}

// A record of eras is read back; nothing else is one.
func TestEras(t *testing.T) {
	want := []string{"0123456789abcdef", "fedcba9876543210"}
	data := AppendEras(nil, want)
	if got, ok := DecodeEras(data); !ok || !slices.Equal(got, want) {
		t.Errorf("%s: %v, %v", data, got, ok)
	}
	for _, bad := range []string{"", `{}`, `{"eras":""}`, `{"eras":"0123"}`, `{"eras":"0123456789abcdeX"}`, `{"eras":"0123456789abcdef","v":2}`, `{"board":"b"}`} {
		if got, ok := DecodeEras([]byte(bad)); ok {
			t.Errorf("%s: %v", bad, got)
		}
	}
	u := LedgerUpdate{Update: Update{Board: "b", Member: "m", Op: OpIncr, Delta: 1, Score: 1, Run: 1, Seq: 1, OrderID: "o", At: 1, Given: "\x00x", Data: "x"}, Class: "c", Era: want[0]}
	var got LedgerUpdate
	if err := DecodeLedgerUpdate(AppendLedgerUpdate(nil, &u), &got); err != nil || got.Era != u.Era || got.Given != u.Given {
		t.Errorf("%+v, %v", got, err)
	}
}
