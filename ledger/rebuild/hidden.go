package rebuild

import (
	"context"
	"fmt"

	"rankcache/wire"
)

// findHidden finds out whether the new board has a hash of hidden members: Redis, or the ledger, has one that is or was
// hidden there, or all boards of its class hide some. What the ledger gets later has the rebuild begin again.
func (w *work) findHidden(ctx context.Context) (err error) {
	if w.opts.Updates != nil {
		return nil // such boards are refused
	}
	if w.rules.Class != "" {
		list, err := w.opts.Redis.HGetAll(ctx, w.opts.Names.HiddenListKey(w.rules.Class)).Result()
		if err != nil {
			return err
		}
		w.born = make(map[string]string)
		for member, serial := range list {
			if v, _, ok := wire.ParseHidden(serial); ok && !v.Hidden && w.rules.Its(member) { // "serial -" is of one that was restored
				w.born[member] = serial
			}
		}
	}
	if w.rules.Hides = w.meta.HasHidden || len(w.born) > 0; w.rules.Hides {
		return nil
	}
	w.rules.Hides, err = w.opts.Store.HasHidings(ctx, w.board)
	return err
}

// hidden calls keep for each member ever hidden, and for those of born, hidden before they had any point.
func (w *work) hidden(v rows, born map[string]string, keep func(member, veil string) error) error {
	err := v.Hidings(func(member, veil string) error {
		switch {
		case w.rules.Trimmed || w.rules.Data:
			return fmt.Errorf("%w: member %.40q is or was hidden, which boards can't have that are trimmed or have data: take that out of the class", ErrIncomplete, member)
		case !w.rules.Hides:
			return errMoved
		}
		delete(born, member)
		return keep(member, veil)
	})
	if err != nil || w.rules.Trimmed || w.rules.Data {
		return err
	}
	for member, serial := range born {
		if err := keep(member, serial+" -"); err != nil {
			return err
		}
	}
	return nil
}

// compareHidden counts members that Redis and ledger hide otherwise, but for those born hidden without points.
func (w *work) compareHidden(ctx context.Context, v rows) (differ int, err error) {
	redis, err := w.opts.Redis.HGetAll(ctx, w.opts.Names.CompanionKey(w.board, wire.Hidden)).Result()
	if err != nil {
		return 0, err
	}
	err = v.Hidings(func(member, veil string) error {
		is, raw, _ := wire.ParseHidden(redis[member])
		if is.Text(raw) != veil {
			differ++
		}
		delete(redis, member)
		return nil
	})
	for _, value := range redis {
		if is, _, _ := wire.ParseHidden(value); is.Serial > 0 && !is.Bare {
			differ++
		}
	}
	return differ, err
}
