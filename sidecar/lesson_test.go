package sidecar

import (
	"fmt"
	"testing"
)

// visit has a connection read the bytes, and the library find the requests in them:
// true where it was answered with a kept page.
func visit(l *lesson, r *repeats, bytes string, kept ...bool) (known bool) {
	if l.begin(r, []byte(bytes)) != nil {
		return true
	}
	for _, kept := range kept {
		l.next()
		if c := new(call); kept && l.wanted() {
			c.query.Board = "b"
			l.learn(c, codingNone, nil)
		}
	}
	l.end(r)
	return false
}

// TestLesson: what is learnt is what one whole request asked for that came twice.
func TestLesson(t *testing.T) {
	long := string(make([]byte, maxRepeated+1))
	for name, c := range map[string]struct {
		visit func(l *lesson, r *repeats) bool
		want  string // of five visits: . unknown, + known
	}{
		"one request":                    {func(l *lesson, r *repeats) bool { return visit(l, r, "a", true) }, "..+++"},
		"one that is not a kept page":    {func(l *lesson, r *repeats) bool { return visit(l, r, "a", false) }, "....."},
		"two":                            {func(l *lesson, r *repeats) bool { return visit(l, r, "ab", true, true) }, "....."},
		"two, the second a kept page":    {func(l *lesson, r *repeats) bool { return visit(l, r, "ab", false, true) }, "....."},
		"two, the first a kept page":     {func(l *lesson, r *repeats) bool { return visit(l, r, "ab", true, false) }, "....."},
		"three":                          {func(l *lesson, r *repeats) bool { return visit(l, r, "abc", true, true, true) }, "....."},
		"none":                           {func(l *lesson, r *repeats) bool { return visit(l, r, "") }, "....."},
		"a long one":                     {func(l *lesson, r *repeats) bool { return visit(l, r, long, true) }, "....."},
		"one that needed a further read": {func(l *lesson, r *repeats) bool { defer l.spoil(); return visit(l, r, "a") }, "....."},
		"the beginning of another": {func(l *lesson, r *repeats) bool {
			if l.begin(r, []byte("ab")) != nil {
				return true
			}
			l.next()
			if l.wanted() {
				l.learn(new(call), codingNone, nil)
			}
			l.next()
			l.spoil() // the rest of the other is read
			l.end(r)
			return false
		}, "....."},
	} {
		t.Run(name, func(t *testing.T) {
			var l lesson
			r, got := new(repeats), ""
			for range 5 {
				got += map[bool]string{false: ".", true: "+"}[c.visit(&l, r)]
			}
			if got != c.want {
				t.Errorf("known %s, want %s", got, c.want)
			}
		})
	}
}

// TestRepeatsAreShared: what one connection learnt another knows.
func TestRepeatsAreShared(t *testing.T) {
	var one, other lesson
	r := new(repeats)
	visit(&one, r, "a", true)
	visit(&other, r, "a", true)
	if !visit(&one, r, "a", true) {
		t.Error("not known to the first")
	}
}

// TestNewRequestsLeaveNothing: requests that are never the same are not kept.
func TestNewRequestsLeaveNothing(t *testing.T) {
	var l lesson
	r := new(repeats)
	for i := range 10_000 {
		visit(&l, r, fmt.Sprintf("traced %d", i), true)
	}
	for i := range r.known {
		if q := r.known[i].Load(); q != nil {
			t.Fatalf("kept %q", q.request)
		}
	}
}
