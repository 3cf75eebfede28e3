package cli

import (
	"time"

	"rankcache/hotkey"
)

// HotAnswer is the stable JSON of /hotkeys.
type HotAnswer struct {
	Enabled bool         `json:"enabled"` // false: there is no hot tier
	Boards  []hotkey.Row `json:"boards"`
	Verdict *HotVerdict  `json:"verdict"` // the fleet's newest; null before the first
}

// HotVerdict is the fleet's verdict and how long ago it was first seen here.
type HotVerdict struct {
	Source  string              `json:"source"`
	Poller  string              `json:"poller"`
	At      time.Time           `json:"at"` // by the poller's clock
	SeenAgo int64               `json:"seen_ago_ms"`
	Counts  bool                `json:"counts"` // false: it is too old and decides nothing
	Boards  []hotkey.BoardCount `json:"boards"`
	Ignored int                 `json:"ignored"` // hot keys that are no board's
}
