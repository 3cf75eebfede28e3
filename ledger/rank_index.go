package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"rankcache/internal/tick"
)

// ErrRankIndex reports that the index of [Ranks] is not there.
var ErrRankIndex = errors.New("the ledger has no index for reads")

// rankIndex is the index that [Ranks] need: (board, raw, member) of rank_score. Only
// ledgers that serve reads have it, because each change costs more with it.
type rankIndex struct{ *database }

// HasRankIndex reports whether the index can be used.
func (s rankIndex) HasRankIndex(ctx context.Context) (bool, error) {
	var n int
	err := s.db.QueryRowContext(ctx, s.d.rankIndexThere).Scan(&n)
	return n > 0, err
}

// MakeRankIndex makes the index, which may take minutes, while rows are read and written.
// Several callers take turns.
func (s rankIndex) MakeRankIndex(ctx context.Context) error {
	if there, err := s.HasRankIndex(ctx); there || err != nil {
		return err
	}
	conn, err := s.session(ctx) // a lock belongs to it
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := s.awaitLock(ctx, conn); err != nil {
		return err
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), s.d.unlock) }()
	if there, err := s.HasRankIndex(ctx); there || err != nil {
		return err
	}
	if s.d.dropRankIndex != "" { // what an earlier attempt has left
		if _, err := conn.ExecContext(ctx, s.d.dropRankIndex); err != nil {
			return fmt.Errorf("making the index for reads: %w", err)
		}
	}
	if _, err := conn.ExecContext(ctx, s.d.rankIndex); err != nil && !isThere(err) {
		return fmt.Errorf("making the index for reads: %w: if this user may not, run rankcache ledger migrate --serve-reads as one who may", err)
	}
	return nil
}

// awaitLock polls for the lock: PostgreSQL does not finish an index that is made without
// locking the table while another statement waits, even for this lock.
func (s rankIndex) awaitLock(ctx context.Context, conn *sql.Conn) error {
	for range tick.NowAndEvery(ctx, time.Second) {
		var got sql.NullInt64
		err := conn.QueryRowContext(ctx, s.d.tryLock).Scan(&got)
		if err != nil || got.Int64 == 1 {
			return err
		}
	}
	return fmt.Errorf("waiting for another program that changes the ledger's tables: %w", ctx.Err())
}
