package sidecar

import (
	"testing"

	"rankcache"
)

func TestDecide(t *testing.T) {
	const open, hot = true, true
	for _, c := range []struct {
		mode      rankcache.Mode
		open, hot bool
		want      Tier
	}{
		{rankcache.ModeNone, !open, !hot, TierRedis},
		{rankcache.ModeNone, !open, hot, TierHot}, // promoted by its own traffic
		{rankcache.ModeNone, open, !hot, TierRedis},
		{rankcache.ModeNone, open, hot, TierHot}, // its room just left the file
		{rankcache.ModeHot, !open, !hot, TierRedis},
		{rankcache.ModeHot, !open, hot, TierHot},
		{rankcache.ModeHot, open, !hot, TierRedis},
		{rankcache.ModeHot, open, hot, TierHot},
		{rankcache.ModeSuperHot, !open, !hot, TierRedis}, // filling
		{rankcache.ModeSuperHot, !open, hot, TierHot},    // filling, but hot already
		{rankcache.ModeSuperHot, open, !hot, TierLocal},
		{rankcache.ModeSuperHot, open, hot, TierLocal},
		{rankcache.ModeBlocked, !open, !hot, TierBlocked},
		{rankcache.ModeBlocked, !open, hot, TierBlocked},
		{rankcache.ModeBlocked, open, !hot, TierBlocked},
		{rankcache.ModeBlocked, open, hot, TierBlocked},
	} {
		if got := decide(c.mode, c.open, c.hot); got != c.want {
			t.Errorf("decide(%v, open %v, hot %v) = %v, want %v", c.mode, c.open, c.hot, got, c.want)
		}
	}
}
