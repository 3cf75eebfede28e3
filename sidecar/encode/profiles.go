package encode

import (
	"context"
	"time"

	"rankcache"
	"rankcache/sidecar"
)

// Joined is the profiles of some rows, in their order.
type Joined struct {
	Profiles [][]byte // nil when profiles were not requested
	Missing  int
	Fresh    func() bool
	Asked    time.Time // when the profile cache was
	Offsets  []int     // filled with where each row's profile begins in the encoded page; nil: not needed
}

// Join asks for the profiles of all entries in one call.
func Join(ctx context.Context, p sidecar.Profiles, entries []rankcache.Entry) Joined {
	members := make([]string, len(entries))
	for i := range entries {
		members[i] = entries[i].Member
	}
	return JoinMembers(ctx, p, members)
}

func JoinMembers(ctx context.Context, p sidecar.Profiles, members []string) Joined {
	j := Joined{Profiles: make([][]byte, len(members)), Asked: time.Now()}
	j.Missing, j.Fresh = p.Join(ctx, members, j.Profiles)
	return j
}

// at returns the profile of row i as JSON, and whether profiles were requested.
func (j *Joined) at(i int) ([]byte, bool) {
	if j.Profiles == nil {
		return nil, false
	}
	if j.Profiles[i] == nil {
		return []byte("null"), true
	}
	return j.Profiles[i], true
}
