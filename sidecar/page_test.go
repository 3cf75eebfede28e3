package sidecar

import (
	"testing"
	"time"
)

func TestAppendTime(t *testing.T) {
	for _, at := range []time.Time{
		published, time.Unix(0, 0), time.Date(2026, 12, 31, 23, 59, 59, 999_999_999, time.FixedZone("", 3600)), {},
		time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC),
	} {
		want := at.UTC().Format(`"2006-01-02T15:04:05.000Z07:00"`)
		if got := string(appendTime(nil, at)); got != want || len(got) != timeLen {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestWeakTagLeavesOutTheTime: answers of Redis that differ in published_at
// alone have one tag, any other difference another.
func TestWeakTagLeavesOutTheTime(t *testing.T) {
	page := func(seq uint64, at time.Time) string {
		a := Answer{Source: SourceRedis}
		a.Seq, a.At = seq, at
		return string(appendETag(nil, appendPage(nil, Query{Board: "b"}, 50, &a, &joined{}), SourceRedis))
	}
	tag := page(7, published)
	if page(7, published.Add(time.Hour)) != tag {
		t.Error("the time changes the tag")
	}
	if page(8, published) == tag {
		t.Error("the seq does not change the tag")
	}
}
