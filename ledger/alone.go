package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"rankcache/internal/tick"
)

// lockEvery is the time between two attempts to get the lock.
const lockEvery = 200 * time.Millisecond

// alone calls do once no other program changes the tables, and keeps others from it meanwhile. In PostgreSQL a transaction has the
// lock, because behind a pooler a connection is one of the server's no longer than that. The lock is polled for: statements that wait
// would take the pooler's connections, and PostgreSQL does not finish an index that is made without locking the table while one waits.
func (s *database) alone(ctx context.Context, do func() error) error {
	for range tick.NowAndEvery(ctx, lockEvery) {
		if locked, err := s.tryAlone(ctx, do); locked || err != nil {
			return err
		}
	}
	return fmt.Errorf("waiting for another program that changes the ledger's tables: %w", ctx.Err())
}

// tryAlone calls do if it gets the lock.
func (s *database) tryAlone(ctx context.Context, do func() error) (locked bool, err error) {
	conn, err := s.db.Conn(ctx) // do uses others
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if s.d.postgres {
		if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
			return false, err
		}
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), s.d.unlock) }() // the end of the connection unlocks as well
	var got sql.NullInt64
	if err := conn.QueryRowContext(ctx, s.d.tryLock).Scan(&got); err != nil || got.Int64 != 1 {
		return false, err
	}
	return true, do()
}
