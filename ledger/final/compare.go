package final

import (
	"context"
	"encoding/json"
	"fmt"

	"rankcache"
	"rankcache/ledger"
	"rankcache/wire"
)

const maxListed = 10_000 // how many differences are listed

// Differs reports a board of which Redis and the ledger disagree.
type Differs struct {
	Board   rankcache.BoardID   `json:"board"`
	State   string              `json:"state"`  // Redis's
	Redis   int                 `json:"redis"`  // members
	Ledger  int                 `json:"ledger"` // members
	Members int                 `json:"members_that_differ"`
	List    []ledger.Difference `json:"differences"` // the first of them, by member
	File    string              `json:"-"`           // URL of the list
}

func (d *Differs) Error() string {
	if d.Members == 0 {
		return fmt.Sprintf("board %s is not proved: Redis and the ledger have the same %d members, but these do not add up to the checksum in Redis (%s): a score was changed past the writer", d.Board, d.Redis, d.State)
	}
	return fmt.Sprintf("Redis and the ledger differ in %d members of board %s (%d and %d members, state %s): all in %s", d.Members, d.Board, d.Redis, d.Ledger, d.State, d.File)
}

// read returns all members of a closed board in Redis, by their bytes, and its stamp; or an error of [ErrBehind].
func (f *Finalizer) read(ctx context.Context, b rankcache.BoardID) (rows []rankcache.Entry, stamp rankcache.Stamp, err error) {
	before, after, err := f.opts.Origin.Scan(ctx, b, func(batch []rankcache.Entry) error { rows = append(rows, batch...); return nil })
	if err != nil {
		return nil, after, err
	}
	if before.State != after.State || !after.HasSum && (after.Run != 0 || len(rows) > 0) {
		return nil, after, fmt.Errorf("board %s was changed while it was read, or has no checksum: its state was %v and is %v", b, before.State, after.State)
	}
	return ledger.ByMember(rows), after, f.level(ctx, b, after.State)
}

// compare returns a [*Differs] unless Redis's members, and the ledger's, add up to the board's checksum.
func (f *Finalizer) compare(ctx context.Context, made *ledger.Final, rows []rankcache.Entry) error {
	proof, err := f.opts.Store.Prove(ctx, made.Board)
	if err != nil {
		return err
	}
	sum := uint64(0)
	for _, e := range rows {
		sum += wire.Hash(e.Member, e.Score)
	}
	if sum&wire.SumMask == made.Sum && proof.Sum == made.Sum && proof.Members == len(rows) {
		return nil
	}
	found, err := ledger.Differ(rows, maxListed, func(fn func(rankcache.Entry) error) error { return f.opts.Store.EachMember(ctx, made.Board, fn) })
	if err != nil {
		return err
	}
	d := &Differs{Board: made.Board, State: made.State.String(), Redis: len(rows), Ledger: found.Ledger, Members: found.Members, List: found.List}
	data, err := json.Marshal(d)
	if err == nil && d.Members > 0 {
		d.File, err = f.opts.Files.Put(ctx, fileName(&made.Final, ".differences.json"), data)
	}
	if err != nil {
		return fmt.Errorf("%w; its list was not written: %w", d, err)
	}
	return d
}
