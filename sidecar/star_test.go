package sidecar

import (
	"rankcache"
	"rankcache/hotkey"
	"rankcache/ledger/reads"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/profile"
)

// The parts that the read path is made for fit it as they are.
var (
	_ Board            = (*localboard.Board)(nil)
	_ Hot              = (*hotkey.Tracker)(nil)
	_ rankcache.Reader = (*origin.Origin)(nil)
	_ rankcache.Reader = (*reads.Client)(nil)
	_ rankcache.Reader = (*Reader)(nil)
	_ Profiles         = (*profile.Cache)(nil)
)
