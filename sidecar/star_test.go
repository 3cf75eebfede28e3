package sidecar

import (
	"rankcache/hotkey"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/profile"
)

// The parts that the read path is made for fit it as they are.
var (
	_ Board    = (*localboard.Board)(nil)
	_ Hot      = (*hotkey.Tracker)(nil)
	_ Origin   = (*origin.Origin)(nil)
	_ Profiles = (*profile.Cache)(nil)
)
