package sidecar

import (
	"testing"

	"rankcache/rooms"
)

func TestDecide(t *testing.T) {
	const open, hot = true, true
	for _, c := range []struct {
		mode      rooms.Mode
		open, hot bool
		want      Tier
	}{
		{rooms.ModeNone, !open, !hot, TierRedis},
		{rooms.ModeNone, !open, hot, TierHot}, // promoted by its own traffic
		{rooms.ModeNone, open, !hot, TierRedis},
		{rooms.ModeNone, open, hot, TierHot}, // its room just left the file
		{rooms.ModeHot, !open, !hot, TierRedis},
		{rooms.ModeHot, !open, hot, TierHot},
		{rooms.ModeHot, open, !hot, TierRedis},
		{rooms.ModeHot, open, hot, TierHot},
		{rooms.ModeSuperHot, !open, !hot, TierRedis}, // filling
		{rooms.ModeSuperHot, !open, hot, TierHot},    // filling, but hot already
		{rooms.ModeSuperHot, open, !hot, TierLocal},
		{rooms.ModeSuperHot, open, hot, TierLocal},
		{rooms.ModeBlocked, !open, !hot, TierBlocked},
		{rooms.ModeBlocked, !open, hot, TierBlocked},
		{rooms.ModeBlocked, open, !hot, TierBlocked},
		{rooms.ModeBlocked, open, hot, TierBlocked},
	} {
		if got := decide(c.mode, c.open, c.hot); got != c.want {
			t.Errorf("decide(%v, open %v, hot %v) = %v, want %v", c.mode, c.open, c.hot, got, c.want)
		}
	}
}
