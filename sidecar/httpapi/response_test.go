package httpapi

import (
	"bytes"
	"testing"
	"time"

	"rankcache"

	"rankcache/internal/testkit/fixture"
	"rankcache/sidecar/encode"
)

// TestWeakTagLeavesOutTheTime: answers of Redis that differ in published_at
// alone have one tag, any other difference another.
func TestWeakTagLeavesOutTheTime(t *testing.T) {
	page := func(seq uint64, at time.Time) string {
		a := rankcache.Answer{Source: rankcache.SourceRedis}
		a.Seq, a.At = seq, at
		return string(appendETag(nil, encode.AppendPage(nil, &rankcache.Query{Board: "b", Limit: 50}, &a, &encode.Show{}, &encode.Joined{}), rankcache.SourceRedis))
	}
	tag := page(7, fixture.Published)
	if page(7, fixture.Published.Add(time.Hour)) != tag {
		t.Error("the time changes the tag")
	}
	if page(8, fixture.Published) == tag {
		t.Error("the seq does not change the tag")
	}
}

func TestPackOnce(t *testing.T) {
	p, err := newPacker()
	if err != nil {
		t.Fatal(err)
	}
	b := testBody(string(bytes.Repeat([]byte("row "), 200)), nil)
	seen := map[string]bool{string(b.etag): true}
	for c := range codings {
		k := b.pack(c, p)
		if k != b.pack(c, p) {
			t.Errorf("%v: packed twice", c)
		}
		if seen[string(k.etag)] {
			t.Errorf("%v: tag %s is another coding's too", c, k.etag)
		}
		seen[string(k.etag)] = true
	}
}

func TestAccepted(t *testing.T) {
	for header, want := range map[string]coding{
		"":                     codingNone,
		"identity":             codingNone,
		"gzip":                 codingGzip,
		"gzip, deflate, br":    codingGzip,
		"GZIP;q=0.5":           codingGzip,
		"gzip, zstd":           codingZstd,
		"zstd;q=0, gzip;q=1.0": codingGzip,
		"gzip;q=0":             codingNone,
		"gzip; q=0.000":        codingNone,
		"gzip;q=0.001":         codingGzip,
		"xgzip,;,,q=":          codingNone,
	} {
		if got := accepted([]byte(header)); got != want {
			t.Errorf("accepted(%q) = %v, want %v", header, got, want)
		}
	}
}
