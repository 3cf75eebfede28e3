package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"rankcache"
	"rankcache/wire"
)

// What is known of a row of rank_lost, in its column state.
const (
	lostAside   = 0 // its order id may come again
	lostAgain   = 1 // it has; or the row is a trim, which goes with the change that caused it
	lostGone    = 2 // it has not come again in time
	lostWrong   = 3 // as lostAside, and Redis had its order id after that time: once it is forgotten there, nobody could tell
	lostUnknown = 4 // as lostAside, and nobody can tell: Redis was asked when it may have forgotten its order id
)

const (
	// judgeEvery is the time between two looks for what has come again.
	judgeEvery = 2 * time.Second
	// comesWithin is how long what was set aside may take to come again, and looksFor how long it is
	// looked for: a rewind may take longer.
	comesWithin, looksFor = 10 * time.Minute, 24 * time.Hour
	// judgedAtOnce is of how many rows Redis is asked in a look.
	judgedAtOnce = 2000
)

// isAside is the condition of rows that may come again.
var isAside = fmt.Sprintf("state IN (%d, %d, %d)", lostAside, lostWrong, lostUnknown)

// Redis is what a ledger asks of Redis.
type Redis interface {
	// Orders reports of each order id whether Redis has it on the board. It may have forgotten those of changes of before
	// since, in Unix milliseconds.
	Orders(ctx context.Context, board rankcache.BoardID, ids []string) (known []bool, since int64, err error)
	// Meta returns what Redis has of a board beside its members, and whether it has it.
	Meta(ctx context.Context, board rankcache.BoardID) (meta wire.Meta, found bool, err error)
	// Home returns the state of a board, none if Redis does not have it, and the era of its server, both of one moment.
	Home(ctx context.Context, board rankcache.BoardID) (state rankcache.State, era string, err error)
}

// asideOf counts the changes of a board that Redis does not have any more and that may come again.
func asideOf(t *transaction, board rankcache.BoardID) (n int, err error) {
	q := t.d.query("SELECT count(*) FROM rank_lost WHERE ", isAside, " AND board = ").arg(string(board))
	err = q.each(t, func(row *sql.Rows) error { return row.Scan(&n) })
	return n, err
}
