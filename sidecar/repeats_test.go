package sidecar

import "testing"

// TestRepeatsTellRequestsApart: another request in the same slot is not taken for it.
func TestRepeatsTellRequestsApart(t *testing.T) {
	r := new(repeats)
	r.keep(7, &question{request: "a"})
	if q := r.find(7+repeatSlots, []byte("b")); q != nil {
		t.Errorf("found %q", q.request)
	}
}
