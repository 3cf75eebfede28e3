package sidecar

import (
	"context"
	"log/slog"
	"time"

	"rankcache"
	"rankcache/rooms"
)

// Board is one open local board. All methods may be called concurrently and
// must not keep the strings that they are given. An answer without a time (At) means that
// the board was emptied meanwhile: it is read from Redis then.
type Board interface {
	// Top returns the published head, best first, nil before the first one.
	Top() *rankcache.Top
	// Page returns up to limit rows from the 0-based start, none past the end.
	Page(start, limit int, order rankcache.Direction) rankcache.Page
	// AppendPage is Page with the rows appended to dst, for a page that is read once.
	AppendPage(dst []rankcache.Entry, start, limit int, order rankcache.Direction) rankcache.Page
	// Stamp is the head without rows; its time is zero before the first one.
	Stamp() rankcache.Stamp
	// Standings appends one row per member to dst, all of one moment, and returns the head
	// of that moment; nil: the board was emptied.
	Standings(dst []rankcache.Standing, members []string, order rankcache.Direction) ([]rankcache.Standing, *rankcache.Top)
	// RankedStandings is Standings in the direction of q, with what is ahead of each member.
	RankedStandings(q rankcache.PageQuery, dst []rankcache.Standing, members []string) ([]rankcache.Standing, []rankcache.Ahead, rankcache.Stamp)
	// Around returns the member's row with up to n neighbours on either side,
	// and its rank; false, and a page that has a stamp only, when it is not on the
	// board.
	Around(member string, n int, order rankcache.Direction) (rankcache.Page, int, bool)
	// WholePage answers the query, all of one moment, and returns the head of that
	// moment. The query's board is not looked at.
	WholePage(q rankcache.PageQuery) (rankcache.WholePage, *rankcache.Top)
	// CurrentAt is when the copy was last known to equal Redis.
	CurrentAt() time.Time
	// SumAt returns the checksum that the copy had at a recent seq of a run; unknown
	// if that seq is too long ago, not reached, or of another run.
	SumAt(run, seq uint64) (sum uint64, known bool)
}

// Boards finds open local boards. It must not keep the id.
type Boards interface {
	Get(rankcache.BoardID) (Board, bool)
}

// Hot keeps the top pages of hot boards fresh. It must not keep the ids that it
// is given: they may be the memory of a request.
type Hot interface {
	// Top returns the refreshed head of the board and when it was last known to
	// equal Redis; false when there is none that may be served.
	Top(rankcache.BoardID) (top *rankcache.Top, currentAt time.Time, ok bool)
	// Count counts a read, of any source.
	Count(rankcache.BoardID)
}

// Profiles joins nick and avatar into answers.
type Profiles interface {
	// Join sets dst[i] to the profile of members[i], a JSON object that must not be
	// changed, or to nil when there is none. It waits for profiles that have to be
	// loaded, up to its own deadline, and not at all when ctx is done; missing is how many of
	// the nils are not known yet.
	// fresh is called before an encoding of dst is used again, from many
	// goroutines: it returns false once any of the profiles has changed, arrived or must
	// be refreshed. Join keeps neither slice; it may keep the members' strings.
	Join(ctx context.Context, members []string, dst [][]byte) (missing int, fresh func() bool)
}

// Config has the sources that a [Reader] reads from. Zero numbers take their defaults.
type Config struct {
	// Tiers returns the operator's tiers of this moment.
	Tiers func() *rooms.Tiers
	// CheckBoard returns why no board has an id, such as [wire.Names.CheckBoard]; nil:
	// [rankcache.BoardID.Check].
	CheckBoard func(rankcache.BoardID) error

	Boards   Boards   // nil: no super-hot tier
	Hot      Hot      // nil: no hot tier
	Profiles Profiles // nil: answers carry no profiles
	Origin   Origin
	// Ledger answers what Origin leaves unanswered; nil: nothing does. Its answers are as old
	// as the time in their stamp.
	Ledger Origin
	Limits OriginLimits
	Log    *slog.Logger // of faults while asking the origin; nil: they are only counted
}
