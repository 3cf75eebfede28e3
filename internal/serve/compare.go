package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/cli"
	"rankcache/internal/tick"
	"rankcache/localboard"
	"rankcache/origin"
)

const (
	compareTries   = 10 // how often members that differ are read again: an update may be under way
	comparePause   = 100 * time.Millisecond
	maxDifferences = 100 // the most that are reported
	compareChunk   = 500 // how many members one call to Redis reads
)

// boardComparer compares open boards with Redis, entry by entry, one board at a time. mu is held for the whole of a
// comparison, calls to Redis included; only other comparisons want it, and they don't wait.
type boardComparer struct {
	boards *localboard.Boards
	origin *origin.Origin
	shards func(rankcache.BoardID) int // as of [rooms.Tiers.Shards]
	mu     sync.Mutex
}

// difference is a member whose raw score here is not Redis's; null where it is missing.
type difference struct {
	Member string   `json:"member"`
	Here   *float64 `json:"here_raw"`
	Redis  *float64 `json:"redis_raw"`
	// Data of both, of classes with data.
	HereData  string `json:"here_data,omitempty"`
	RedisData string `json:"redis_data,omitempty"`
}

// compareLine is a line of the answer. The last one has Done or Error.
type compareLine struct {
	Compared    int          `json:"compared"`
	Members     int          `json:"members"` // of the board in Redis
	Done        bool         `json:"done,omitempty"`
	State       string       `json:"state,omitempty"` // of Redis, when all was read
	Differences []difference `json:"differences,omitempty"`
	More        int          `json:"more,omitempty"` // differences that are not listed
	Error       string       `json:"error,omitempty"`
}

// serve answers POST /boards/{board}/compare with lines of JSON: progress, then the result.
func (c *boardComparer) serve(w http.ResponseWriter, r *http.Request) {
	id, err := rankcache.ParseBoardID(r.PathValue("board"))
	if err != nil {
		cli.WriteProblem(w, "bad_argument", "board", err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	lines := json.NewEncoder(w)
	tell := func(l *compareLine) {
		_ = lines.Encode(l) // the caller may have left: then ctx ends
		_ = http.NewResponseController(w).Flush()
	}
	last, err := c.whole(r.Context(), id, tell)
	if err != nil {
		last.Error = err.Error()
	}
	tell(last)
}

var (
	errNotOpen   = errors.New("the board is not open here: there is nothing to compare")
	errComparing = errors.New("another board is being compared: try again when that is done")
)

// whole compares a board, or the shards of a split one, one after the other, as one board without a state.
func (c *boardComparer) whole(ctx context.Context, id rankcache.BoardID, tell func(*compareLine)) (*compareLine, error) {
	n := c.shards(id)
	if n == 0 {
		return c.compare(ctx, id, tell)
	}
	sum := &compareLine{Done: true}
	for _, id := range class.ShardIDs(id, n) {
		line, err := c.compare(ctx, id, func(l *compareLine) {
			tell(&compareLine{Compared: sum.Compared + l.Compared, Members: sum.Members + l.Members})
		})
		if err != nil {
			return &compareLine{Compared: sum.Compared, Members: sum.Members}, fmt.Errorf("shard %s: %w", id, err)
		}
		sum.Compared, sum.Members = sum.Compared+line.Compared, sum.Members+line.Members
		room := min(len(line.Differences), maxDifferences-len(sum.Differences))
		sum.Differences = append(sum.Differences, line.Differences[:room]...)
		sum.More += line.More + len(line.Differences) - room
	}
	return sum, nil
}

// compare walks Redis, compares each member with the copy, and, if the number of members differs, the other way round.
func (c *boardComparer) compare(ctx context.Context, id rankcache.BoardID, tell func(*compareLine)) (*compareLine, error) {
	board, open := c.boards.Get(id)
	if !open {
		return &compareLine{}, errNotOpen
	}
	if !c.mu.TryLock() {
		return &compareLine{}, errComparing
	}
	defer c.mu.Unlock()
	line := &compareLine{Members: membersOf(ctx, board)}
	suspects := make(map[string]bool)
	before, after, err := c.origin.Scan(ctx, id, func(batch []rankcache.Entry) error {
		if err := suspect(ctx, suspects, board, batch); err != nil {
			return err
		}
		line.Compared += len(batch)
		tell(line)
		return ctx.Err()
	})
	if err != nil {
		return line, err
	}
	if membersOf(ctx, board) != after.Members || before.Run != after.Run {
		if err := c.suspectHere(ctx, id, board, suspects); err != nil {
			return line, err
		}
	}
	line.Members, line.State, line.Compared = after.Members, after.State.String(), max(line.Compared, after.Members)
	if line.Differences, err = c.confirm(ctx, id, board, suspects); err != nil {
		return line, err
	}
	if len(line.Differences) > maxDifferences {
		line.More, line.Differences = len(line.Differences)-maxDifferences, line.Differences[:maxDifferences]
	}
	line.Done = true
	return line, nil
}

func membersOf(ctx context.Context, board *localboard.Board) int {
	return rankcache.One(ctx, board, rankcache.Query{}).Members
}

// standings returns the standings of members in a copy, which may have been emptied, or in Redis.
func standings(ctx context.Context, r rankcache.Reader, id rankcache.BoardID, members []string) ([]rankcache.Own, error) {
	a := rankcache.One(ctx, r, rankcache.Query{Board: id, Members: members})
	if errors.Is(a.Err, rankcache.ErrNotKept) {
		return nil, errNotOpen
	}
	return a.Own, a.Err
}

func membersIn(rows []rankcache.Entry) []string {
	members := make([]string, len(rows))
	for i, e := range rows {
		members[i], _ = rankcache.SplitData(e.Member)
	}
	return members
}

// suspect notes the members of a batch whose score here is another.
func suspect(ctx context.Context, suspects map[string]bool, board *localboard.Board, batch []rankcache.Entry) error {
	here, err := standings(ctx, board, board.ID(), membersIn(batch))
	for i, s := range here {
		if _, data := rankcache.SplitData(batch[i].Member); s.Rank == 0 || s.Score != batch[i].Score || s.Data.Of(s.Member) != data {
			suspects[s.Member] = true
		}
	}
	return err
}

// suspectHere notes the members of the copy that Redis does not have.
func (c *boardComparer) suspectHere(ctx context.Context, id rankcache.BoardID, board *localboard.Board, suspects map[string]bool) error {
	for start := 0; ; start += compareChunk {
		page := rankcache.One(ctx, board, rankcache.Query{Start: start, Limit: compareChunk, Order: rankcache.Ascending})
		if len(page.Entries) == 0 {
			return nil
		}
		there, err := standings(ctx, c.origin, id, membersIn(page.Entries))
		if err != nil {
			return err
		}
		for _, s := range there {
			if s.Rank == 0 {
				suspects[s.Member] = true
			}
		}
	}
}

// confirm reads the suspects again, on both sides, until they agree or have differed each time.
func (c *boardComparer) confirm(ctx context.Context, id rankcache.BoardID, board *localboard.Board, suspects map[string]bool) (differ []difference, err error) {
	members := make([]string, 0, len(suspects))
	for m := range suspects {
		members = append(members, m)
	}
	for try := 0; try < compareTries && len(members) > 0; try++ {
		if try > 0 && !tick.Sleep(ctx, comparePause) {
			return nil, ctx.Err()
		}
		if differ, err = c.differing(ctx, id, board, members); err != nil {
			return nil, err
		}
		members = members[:0]
		for _, d := range differ {
			members = append(members, d.Member)
		}
	}
	return differ, nil
}

func (c *boardComparer) differing(ctx context.Context, id rankcache.BoardID, board *localboard.Board, members []string) (differ []difference, err error) {
	for len(members) > 0 {
		n := min(compareChunk, len(members))
		there, err := standings(ctx, c.origin, id, members[:n])
		if err != nil {
			return nil, err
		}
		here, err := standings(ctx, board, id, members[:n])
		if err != nil {
			return nil, err
		}
		for i := range here {
			if data, other := here[i].Data.Of(here[i].Member), there[i].Data.Of(here[i].Member); data != other {
				differ = append(differ, difference{here[i].Member, scoreOf(here[i].Standing), scoreOf(there[i].Standing), data, other})
			} else if here[i].Score != there[i].Score || (here[i].Rank == 0) != (there[i].Rank == 0) {
				differ = append(differ, difference{here[i].Member, scoreOf(here[i].Standing), scoreOf(there[i].Standing), data, other})
			}
		}
		members = members[n:]
	}
	return differ, nil
}

// scoreOf returns nil for a member that is not on the board.
func scoreOf(s rankcache.Standing) *float64 {
	if s.Rank == 0 {
		return nil
	}
	return &s.Score
}
