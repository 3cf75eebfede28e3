package sidecar

import (
	"context"
	"time"

	"rankcache"
)

// Profiles joins nick and avatar into answers.
type Profiles interface {
	// Join sets dst[i] to the profile of members[i], an opaque JSON object that
	// nobody changes, or to nil when there is none. It waits for profiles that
	// have to be loaded, but not beyond its own deadline; missing says how many
	// of the nils it does not know about yet. fresh is kept with what was
	// encoded from dst and asked before that is used again, from many goroutines:
	// false once any of the profiles has changed, arrived or must be refreshed.
	// Join keeps neither slice; members are strings that it may keep.
	Join(ctx context.Context, members []string, dst [][]byte) (missing int, fresh func() bool)
}

// joined is the profiles of some rows, in their order.
type joined struct {
	profiles [][]byte // nil when profiles were not asked for
	missing  int
	fresh    func() bool
	asked    time.Time // when the cache was
	offsets  []int     // filled with where each row's profile begins in the encoded page; nil: not needed
}

// join asks for the profiles of all entries in one call.
func join(ctx context.Context, p Profiles, entries []rankcache.Entry) joined {
	members := make([]string, len(entries))
	for i := range entries {
		members[i] = entries[i].Member
	}
	return joinMembers(ctx, p, members)
}

func joinMembers(ctx context.Context, p Profiles, members []string) joined {
	j := joined{profiles: make([][]byte, len(members)), asked: time.Now()}
	j.missing, j.fresh = p.Join(ctx, members, j.profiles)
	return j
}

// at returns the profile of row i as JSON, and whether profiles were asked for.
func (j *joined) at(i int) ([]byte, bool) {
	if j.profiles == nil {
		return nil, false
	}
	if j.profiles[i] == nil {
		return []byte("null"), true
	}
	return j.profiles[i], true
}
