package rankcache_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rankcache"
)

// TestRawsOfShownScores compares ranges of raw scores, by brute force, with what is shown of each.
func TestRawsOfShownScores(t *testing.T) {
	t.Parallel()
	var raws []float64
	for raw := -4.0; raw <= 4; raw += 0.125 {
		raws = append(raws, raw, math.Nextafter(raw, math.Inf(1)), math.Nextafter(raw, math.Inf(-1)))
	}
	raws = append(raws, -1<<60, 1<<60, 1<<53, 1<<53-1, math.MaxFloat64, -math.MaxFloat64)
	ends := []float64{math.Inf(-1), -1 << 60, -3, -2.5, -1, 0, math.Copysign(0, -1), 0.5, 1, 2.75, 3, 1<<53 - 1, 1 << 60, math.Inf(1)}
	for form := range rankcache.ScoreForm(4) {
		for i, least := range ends {
			for _, most := range ends[i:] {
				q := rankcache.Query{Form: form, Range: &rankcache.ScoreRange{Least: least, Most: most, Shown: true}}
				lo, hi := q.RawRange()
				for _, raw := range raws {
					shown := form.Shown(raw)
					if got, want := raw >= lo && raw <= hi, shown >= least && shown <= most; got != want {
						t.Fatalf("form %d shows %v as %v: from %v to %v it is %t by %v to %v", form, raw, shown, least, most, got, lo, hi)
					}
				}
			}
		}
	}
	q := rankcache.Query{Form: rankcache.ScoreInteger, Range: &rankcache.ScoreRange{Least: 1.5, Most: 1.75}}
	if lo, hi := q.RawRange(); lo != 1.5 || hi != 1.75 {
		t.Errorf("raw scores become %v to %v", lo, hi)
	}
}

// TestRangeOfATop compares what heads of a board answer with the whole board: the same, or nothing.
func TestRangeOfATop(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	answered, refused := 0, 0
	for range 3000 {
		rows := make([]rankcache.Entry, r.IntN(12))
		for i := range rows {
			rows[i] = rankcache.Entry{Member: string(rune('a' + i)), Score: float64(r.IntN(24)-6) / 4}
		}
		slices.SortFunc(rows, func(a, b rankcache.Entry) int { return int(8 * (b.Score - a.Score)) })
		kept := r.IntN(len(rows) + 1)
		top := &rankcache.Top{Board: "b", Entries: rows[:kept], Members: len(rows)}
		whole := &rankcache.Top{Board: "b", Entries: rows, Members: len(rows)}
		least := float64(r.IntN(28)-8) / 4
		q := rankcache.Query{Form: rankcache.ScoreForm(r.IntN(4)), Start: r.IntN(4), Limit: r.IntN(4), Percentile: r.IntN(2) == 0, Order: rankcache.Direction(r.IntN(8) / 7),
			Range: &rankcache.ScoreRange{Least: least, Most: least + float64(r.IntN(12))/4, Shown: true}}
		var got, want rankcache.Answer
		top.Answer(&q, &got, time.Time{})
		whole.Answer(&q, &want, time.Time{})
		if got.Err != nil {
			refused++
			continue
		}
		answered++
		lo, hi := q.RawRange()
		before, within := 0, 0
		for _, e := range rows {
			if e.Score > hi {
				before++
			} else if e.Score >= lo {
				within++
			}
		}
		if got.Start != before+q.Start || got.Matches != within || got.Kept != nil || len(got.Entries) != max(min(q.Limit, within-q.Start), 0) {
			t.Fatalf("%v, %d of them kept, %+v: %+v; %d before, %d within", rows, kept, q.Range, got, before, within)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(rankcache.Answer{}, "Kept")); diff != "" {
			t.Fatalf("%v, %d of them kept, %+v (-whole +top):\n%s", rows, kept, q.Range, diff)
		}
	}
	if answered < 500 || refused < 500 {
		t.Errorf("%d answered, %d refused", answered, refused)
	}
}
