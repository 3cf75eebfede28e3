package httpapi

import (
	"fmt"
	"testing"
)

// visit has a recorder go through the reading of bytes in which fasthttp finds requests:
// true for one that is answered by a kept page. It returns whether the bytes were cached.
func visit(rec *recorder, cache *requestCache, bytes string, kept ...bool) (cached bool) {
	if rec.begin(cache, []byte(bytes)) != nil {
		return true
	}
	rec.consider(cache, []byte(bytes))
	for _, kept := range kept {
		rec.requestBegun()
		if c := new(call); kept && rec.wants() {
			c.query().Board = "b"
			rec.record(c, codingNone, nil)
		}
	}
	rec.end(cache)
	return false
}

// TestRecorder: a request is recorded if it was whole, alone, and came twice.
func TestRecorder(t *testing.T) {
	long := string(make([]byte, maxCachedRequest+1))
	for name, c := range map[string]struct {
		visit func(rec *recorder, cache *requestCache) bool
		want  string // of five visits: . parsed, + cached
	}{
		"one request":                   {func(rec *recorder, cache *requestCache) bool { return visit(rec, cache, "a", true) }, "..+++"},
		"one that is not a kept page":   {func(rec *recorder, cache *requestCache) bool { return visit(rec, cache, "a", false) }, "....."},
		"two":                           {func(rec *recorder, cache *requestCache) bool { return visit(rec, cache, "ab", true, true) }, "....."},
		"two, the second a kept page":   {func(rec *recorder, cache *requestCache) bool { return visit(rec, cache, "ab", false, true) }, "....."},
		"two, the first a kept page":    {func(rec *recorder, cache *requestCache) bool { return visit(rec, cache, "ab", true, false) }, "....."},
		"three":                         {func(rec *recorder, cache *requestCache) bool { return visit(rec, cache, "abc", true, true, true) }, "....."},
		"none":                          {func(rec *recorder, cache *requestCache) bool { return visit(rec, cache, "") }, "....."},
		"a long one":                    {func(rec *recorder, cache *requestCache) bool { return visit(rec, cache, long, true) }, "....."},
		"one that needs a further read": {func(rec *recorder, cache *requestCache) bool { defer rec.invalidate(); return visit(rec, cache, "a") }, "....."},
		"the beginning of another": {func(rec *recorder, cache *requestCache) bool {
			if rec.begin(cache, []byte("ab")) != nil {
				return true
			}
			rec.consider(cache, []byte("ab"))
			rec.requestBegun()
			if rec.wants() {
				rec.record(new(call), codingNone, nil)
			}
			rec.requestBegun()
			rec.invalidate() // the rest of the other is read
			rec.end(cache)
			return false
		}, "....."},
	} {
		t.Run(name, func(t *testing.T) {
			var rec recorder
			cache, got := new(requestCache), ""
			for range 5 {
				got += map[bool]string{false: ".", true: "+"}[c.visit(&rec, cache)]
			}
			if got != c.want {
				t.Errorf("cached %s, want %s", got, c.want)
			}
		})
	}
}

// TestCacheIsShared: what one connection recorded another finds.
func TestCacheIsShared(t *testing.T) {
	var one, other recorder
	cache := new(requestCache)
	visit(&one, cache, "a", true)
	visit(&other, cache, "a", true)
	if !visit(&one, cache, "a", true) {
		t.Error("not cached for the first")
	}
}

// TestNewRequestsLeaveNothing: requests that are never the same are not stored.
func TestNewRequestsLeaveNothing(t *testing.T) {
	var rec recorder
	cache := new(requestCache)
	for i := range 10_000 {
		visit(&rec, cache, fmt.Sprintf("traced %d", i), true)
	}
	for i := range cache.cached {
		if q := cache.cached[i].Load(); q != nil {
			t.Fatalf("stored %q", q.request)
		}
	}
}

// TestCachedRequestsAreToldApart: another request in the same slot is not taken for it.
func TestCachedRequestsAreToldApart(t *testing.T) {
	c := new(requestCache)
	c.put(7, &cachedRequest{request: "a"})
	if q := c.find(7+requestSlots, []byte("b")); q != nil {
		t.Errorf("found %q", q.request)
	}
}
