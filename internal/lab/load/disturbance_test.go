package load

import (
	"testing"
	"time"
)

func TestUndisturbed(t *testing.T) {
	ms := int64(time.Millisecond)
	r := &Result{answers: []span{
		{1 * ms, 2 * ms},
		{4 * ms, 6 * ms},            // another program had the core before and after
		{10 * ms, 15 * ms},          // within
		{20*ms - 40_000, 20*ms + 1}, // for too short a time
		{21 * ms, 40 * ms},          // in two pieces, together long enough
		{50 * ms, 53 * ms},
	}}
	others := Disturbance{{3 * ms, 4 * ms}, {6 * ms, 7 * ms}, {11 * ms, 12 * ms}, {20*ms - 40_000, 20 * ms},
		{22 * ms, 22*ms + 30_000}, {23 * ms, 23*ms + 30_000}}
	rest, heldUp := r.Undisturbed(others)
	if heldUp != 2 || rest.Requests != 4 || rest.Percentile(1) != 3*time.Millisecond || rest.Percentile(0.5) != time.Millisecond {
		t.Errorf("%d held up, the rest is %v", heldUp, rest.latencies)
	}
	if rest, heldUp := r.Undisturbed(nil); heldUp != 0 || rest.Percentile(1) != 19*time.Millisecond {
		t.Errorf("without other programs %d held up, the rest is %v", heldUp, rest.latencies)
	}
}
