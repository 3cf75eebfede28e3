package resp

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestLearnedFormat(t *testing.T) {
	for want, texts := range map[format][]string{
		formatPrintf:   {"0.10000000000000001", "1e+17", "1048576.9999995232"},
		formatShortest: {"0.1", "100000000000000000", "1.0485769999995232e+6"},
		formatUnknown:  {"0.1", "1e+17", "1048576.9999995232"},
	} {
		if got := learnedFormat(texts); got != want {
			t.Errorf("%q: %v, want %v", texts, got, want)
		}
	}
	if got := learnedFormat(nil); got != formatUnknown {
		t.Errorf("no texts: %v", got)
	}
}

func TestUnknownFormatWritesIntegersOnly(t *testing.T) {
	for score, want := range map[float64]string{0: "0", -7: "-7", 99999999999999984: "99999999999999984", 1e17: "", 0.5: "", -1e300: ""} {
		got, ok := formatUnknown.append(nil, score)
		if string(got) != want || ok != (want != "") {
			t.Errorf("%v: %q, %v", score, got, ok)
		}
	}
}

// TestShortestReadsBack: what is written is the number, for any.
func TestShortestReadsBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200_000 {
		score := math.Float64frombits(r.Uint64())
		if i%2 == 0 {
			score = r.NormFloat64() * math.Pow(10, float64(r.IntN(30)-10))
		}
		if math.IsNaN(score) || math.IsInf(score, 0) {
			continue
		}
		text := appendShortest(nil, score)
		// Of numbers with 18 and more digits the exponent form drops the last ones.
		if back, err := strconv.ParseFloat(string(text), 64); err != nil || back != score && math.Abs(back-score) > math.Abs(score)*1e-15 {
			t.Fatalf("%v is written %s, which is %v (%v)", score, text, back, err)
		}
	}
}
