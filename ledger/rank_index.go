package ledger

import (
	"context"
	"errors"
	"fmt"
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
	return s.alone(ctx, func() error { return s.make(ctx) })
}

func (s rankIndex) make(ctx context.Context) error {
	if there, err := s.HasRankIndex(ctx); there || err != nil {
		return err
	}
	if s.d.dropRankIndex != "" { // what an earlier attempt has left
		if _, err := s.db.ExecContext(ctx, s.d.dropRankIndex); err != nil {
			return fmt.Errorf("making the index for reads: %w", err)
		}
	}
	if _, err := s.db.ExecContext(ctx, s.d.rankIndex); err != nil && !isThere(err) {
		return fmt.Errorf("making the index for reads: %w: if this user may not, run rankcache ledger migrate --serve-reads as one who may", err)
	}
	return nil
}
