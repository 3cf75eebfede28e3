package httpapi

import (
	"testing"
	"time"

	"rankcache/sidecar"
	"rankcache/sidecar/internal/apijson"
	"rankcache/sidecar/internal/fixture"
)

// TestWeakTagLeavesOutTheTime: answers of Redis that differ in published_at
// alone have one tag, any other difference another.
func TestWeakTagLeavesOutTheTime(t *testing.T) {
	page := func(seq uint64, at time.Time) string {
		a := sidecar.Answer{Source: sidecar.SourceRedis}
		a.Seq, a.At = seq, at
		return string(appendETag(nil, apijson.AppendPage(nil, sidecar.Query{Board: "b"}, 50, &a, &apijson.Joined{}), sidecar.SourceRedis))
	}
	tag := page(7, fixture.Published)
	if page(7, fixture.Published.Add(time.Hour)) != tag {
		t.Error("the time changes the tag")
	}
	if page(8, fixture.Published) == tag {
		t.Error("the seq does not change the tag")
	}
}
