package wire

import (
	"bytes"
	"math"
	"os"
	"reflect"
	"testing"

	"rankcache"
)

// The golden record is the contract with everything that reads the topic of finals.
func TestGoldenFinal(t *testing.T) {
	f := Final{Board: "gift:7:20261122-17", Class: "gift-half-hour", Dims: map[string]string{"zone": "7"}, Tag: "20261122-17", Start: 1763769600000, End: 1763771400000,
		State: rankcache.State{Run: 1838429319476737, Seq: 917, Sum: 0x0a1b2c3d4e5f, HasSum: true}, Members: 2,
		Top:  []rankcache.Entry{{Member: "1000123", Score: 42.5}, {Member: "1000124", Score: 7}},
		File: "s3://finals/gift-half-hour/20261122-17/gift.7.20261122-17-1838429319476737-917-0a1b2c3d4e5f.parquet"}
	golden, err := os.ReadFile("testdata/rank_final.golden")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := EncodeFinal(&f); err != nil || !bytes.Equal(got, bytes.TrimSpace(golden)) {
		t.Errorf("%v, wrote\n%s, golden\n%s", err, got, golden)
	}
	// Of a class with integer scores a raw one stands beside the score.
	f.Form = rankcache.ScoreInteger
	got, err := EncodeFinal(&f)
	for _, want := range []string{`{"v":2,`, `{"rank":1,"member":"1000123","score":42,"raw":42.5},{"rank":2,"member":"1000124","score":7}`} {
		if err != nil || !bytes.Contains(got, []byte(want)) {
			t.Errorf("%v, wrote\n%s, want %s", err, got, want)
		}
	}
	// Where the lowest score is the best the raw one is the negative.
	f.Form |= rankcache.ScoreLowest
	f.Members = 3
	f.Top = []rankcache.Entry{{Member: "a", Score: -41.5}, {Member: "b", Score: -50}, {Member: "c", Score: 0.5}}
	got, err = EncodeFinal(&f)
	if want := `{"rank":1,"member":"a","score":42,"raw":-41.5},{"rank":2,"member":"b","score":50,"raw":-50},{"rank":3,"member":"c","score":0,"raw":0.5}`; err != nil || !bytes.Contains(got, []byte(want)) {
		t.Errorf("%v, wrote\n%s, want %s", err, got, want)
	}
	var back Final
	if err := DecodeFinal(got, &back); err != nil || !reflect.DeepEqual(back, f) {
		t.Errorf("%v, read %+v, want %+v", err, back, f)
	}
	for _, bad := range []string{"", "{}", `{"v":3,"board":"b","class":"c","sum":"0"}`, `{"v":1,"board":"b","class":"c","sum":"x"}`, `{"v":2,"board":"b","class":"c","sum":"0","members":1,"top":[{"score":5,"raw":7}]}`} {
		if err := DecodeFinal([]byte(bad), &back); err == nil {
			t.Errorf("read %s as %+v", bad, back)
		}
	}
	f.Top[0].Score = math.Inf(1)
	if got, err := EncodeFinal(&f); err == nil {
		t.Errorf("wrote %s", got)
	}
}
