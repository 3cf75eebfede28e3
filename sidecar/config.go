package sidecar

import (
	"context"
	_ "embed"
	"log/slog"
	"time"

	"rankcache"
	"rankcache/rooms"
)

// Board is one open local board. Its methods may be called concurrently.
type Board interface {
	// Read answers [rankcache.ErrNotKept] if the board was emptied since it was found.
	rankcache.Reader
	// SumAt returns the copy's checksum at a recent seq of a run; unknown if long ago, ahead, or of another run.
	SumAt(run, seq uint64) (sum uint64, known bool)
}

// Boards finds open local boards. It must not keep the id.
type Boards interface {
	Get(rankcache.BoardID) (Board, bool)
}

// Hot keeps top pages of hot boards fresh. It must not keep given ids: they may be the memory of a request.
type Hot interface {
	// Read answers what the refreshed pages have, as [rankcache.Top.Answer] does.
	rankcache.Reader
	// Count counts a read, of any source.
	Count(rankcache.BoardID)
	// Take gets what the origin has answered in place of a page, before the reader gets it.
	Take(*rankcache.Query, *rankcache.Answer)
}

// Profiles joins nick and avatar into answers.
type Profiles interface {
	// Join sets dst[i] to the profile of members[i], a JSON object that must not be changed, or to nil when there is
	// none. It waits for profiles that have to be loaded, up to its own deadline, and not at all when ctx is done;
	// missing is how many of the nils are not known yet. fresh is called before an encoding of dst is used again, from
	// many goroutines: it returns false once any of the profiles has changed, arrived or must be refreshed. Join keeps
	// neither slice; it may keep the members' strings.
	Join(ctx context.Context, members []string, dst [][]byte) (missing int, fresh func() bool)
}

// Config has the sources that a [Reader] reads from. Zero numbers take their defaults.
type Config struct {
	Tiers func() *rooms.Tiers // returns the operator's tiers of this moment
	// CheckBoard returns why no board has an id, such as [wire.Names.CheckBoard]; nil: [rankcache.BoardID.Check].
	CheckBoard func(rankcache.BoardID) error

	Used func(rankcache.BoardID) // called with the board of each read; nil: not wanted. It must not keep the id.
	// Written is called with a board whose hot page is behind Redis, as after a write through this process; nil: not
	// wanted. It must not keep the id. What it returns is closed once the page was read again; nil: the board has none.
	Written func(rankcache.BoardID) <-chan struct{}

	OwnWrites bool // boards are written through this process, which [Reader.Wrote] tells

	Boards   Boards           // nil: no super-hot tier
	Hot      Hot              // nil: no hot tier
	Profiles Profiles         // nil: answers carry no profiles
	Origin   rankcache.Reader // Redis. Errors that wrap [rankcache.ErrUnavailable] tell that it is away.
	// OriginLags tells that Origin is a replica in a region that only reads: what it lacks is not lost, and its answers
	// are as old as their CurrentAt, which may be zero.
	OriginLags bool
	// Ledger answers what Origin leaves unanswered; nil: nothing does. Answers are as old as their stamp tells.
	Ledger rankcache.Reader
	// SmallStale is for how long a page that Redis answered is answered again while Redis does not; 0: not at all.
	SmallStale time.Duration
	Ladders    Ladders // make ranks of large boards cheap for Redis where approximate ones will do; nil: all are exact
	Limits     OriginLimits
	Log        *slog.Logger // of faults while asking the origin; nil: they are only counted
}

// openAPI describes every path of all listeners.
//
//go:embed openapi.yaml
var openAPI string

// OpenAPI returns the HTTP reference as an OpenAPI 3.1 document in YAML.
func OpenAPI() string { return openAPI }
