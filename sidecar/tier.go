package sidecar

import (
	"rankcache/rooms"
)

// Tier says where one board is read.
type Tier uint8

// The tiers, in the order in which they are preferred after TierBlocked.
const (
	TierBlocked Tier = iota // refused, nobody is asked
	TierLocal               // the whole board in memory
	TierHot                 // the refreshed top page in memory, the rest in Redis
	TierRedis               // Redis
)

// String returns the tier as it is shown to operators.
func (t Tier) String() string {
	return [...]string{"blocked", "super-hot", "hot", "small"}[t]
}

// decide says where a board is read: mode is what the operator said of it,
// localOpen whether its local copy may be read, hotHas whether a fresh top page
// of it is here. A super-hot board that is not open falls down the list. A local
// copy that nobody named (its room just left the file) is no longer read.
func decide(mode rooms.Mode, localOpen, hotHas bool) Tier {
	switch {
	case mode == rooms.ModeBlocked:
		return TierBlocked
	case mode == rooms.ModeSuperHot && localOpen:
		return TierLocal
	case hotHas:
		return TierHot
	}
	return TierRedis
}

// Source says what answered a read.
type Source uint8

// The sources of an answer.
const (
	SourceLocal Source = iota // whole local copy
	SourceHot                 // refreshed local top page
	SourceRedis               // Redis
	sources
)

// String returns the source as answers name it: local, hot or redis.
func (s Source) String() string { return [...]string{"local", "hot", "redis"}[s] }
