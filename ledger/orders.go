package ledger

import (
	"context"

	"rankcache/wire"
)

// Verdict tells whether a change is part of the board's history in Redis.
type Verdict uint8

// Verdicts.
const (
	Unknown Verdict = iota // Redis keeps no record of the change's order id any more
	Held                   // Redis has applied the order id at this run and seq
	Lost                   // Redis has not applied the order id, or at another place
)

// Orders is the record that Redis keeps of applied order ids: which of two rows is lost is
// decided by it, as the updates of a dying writer come late. Implementations are safe for
// concurrent use.
type Orders interface {
	// Verdicts returns one verdict for each change. After an error the batch is tried
	// again.
	Verdicts(ctx context.Context, changes []*wire.Update) ([]Verdict, error)
}

// verdicts asks orders, which may be nil.
func verdicts(ctx context.Context, orders Orders, changes []*wire.Update) ([]Verdict, error) {
	if orders == nil || len(changes) == 0 {
		return make([]Verdict, len(changes)), nil
	}
	return orders.Verdicts(ctx, changes)
}
