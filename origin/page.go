package origin

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// Page returns up to limit rows of the board from the 0-based index start on,
// with the board's size and total of the same instant. A board that does not
// exist is an empty one. The error wraps [rankcache.ErrUnavailable] when Redis
// could not be asked in time.
func (o *Origin) Page(ctx context.Context, b rankcache.BoardID, start, limit int, order rankcache.Direction) (rankcache.Page, error) {
	if start < 0 || limit < 1 || limit > rankcache.MaxTop {
		return rankcache.Page{}, fmt.Errorf("page of %d rows from %d: want 1 to %d rows from 0 or more", limit, start, rankcache.MaxTop)
	}
	page := rankcache.Page{Start: start}
	err := o.call(ctx, "page", func(ctx context.Context) (err error) {
		var rows *redis.ZSliceCmd
		page.Stamp, err = o.atOnce(ctx, b, func(p redis.Pipeliner) {
			rows = zRange(ctx, p, o.names.BoardKey(b), start, limit, order)
		})
		if err == nil {
			page.Entries, err = toEntries(o.names.BoardKey(b), rows.Val())
		}
		return err
	})
	return page, err
}

// atOnce runs the commands that add puts into a transaction together with those
// that read the board's size and total. MULTI costs Redis a third less than a
// script for a page of 50 rows.
func (o *Origin) atOnce(ctx context.Context, b rankcache.BoardID, add func(redis.Pipeliner)) (rankcache.Stamp, error) {
	var size *redis.IntCmd
	var total *redis.StringCmd
	keys, at := o.keys(b), time.Now() // the answer may be this old, never older
	cmds, err := o.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		add(p)
		size = p.ZCard(ctx, keys[0])
		if len(keys) > 1 {
			total = p.Get(ctx, keys[1])
		}
		return nil
	})
	stamp := rankcache.Stamp{At: at}
	// A reply that was cut off leaves prefilled rows and an error: error first.
	if err := firstError(cmds, err); err != nil {
		return stamp, err
	}
	stamp.Members = int(size.Val())
	if total != nil && total.Err() == nil {
		stamp.Seq, err = toTotal(keys[1], total.Val())
		return stamp, err
	}
	return stamp, nil
}

// Tops returns the first n rows of each board, read in one pipeline; each head
// is of one instant of its board. The i-th is nil when board i could not be
// read; the error joins the reasons.
func (o *Origin) Tops(ctx context.Context, boards []rankcache.BoardID, n int) ([]*rankcache.Top, error) {
	if n < 1 || n > rankcache.MaxTop {
		return make([]*rankcache.Top, len(boards)), fmt.Errorf("tops of %d rows: want 1 to %d", n, rankcache.MaxTop)
	}
	tops := make([]*rankcache.Top, len(boards))
	err := o.pages(ctx, "tops", boards, n, func(i int, page rankcache.Page) {
		tops[i] = &rankcache.Top{Board: boards[i], Entries: page.Entries,
			Seq: page.Seq, Members: page.Members, PublishedAt: page.At}
	})
	return tops, err
}

// Totals returns the total and the size of each board, read in one pipeline. A
// total of 0 is unknown: its key is missing, or (with an error that joins the
// reasons) the board could not be read.
func (o *Origin) Totals(ctx context.Context, boards []rankcache.BoardID) ([]rankcache.Stamp, error) {
	stamps := make([]rankcache.Stamp, len(boards))
	err := o.pages(ctx, "totals", boards, 0, func(i int, page rankcache.Page) {
		stamps[i] = page.Stamp
	})
	return stamps, err
}
