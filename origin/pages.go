package origin

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// pages reads the head of each board in one pipeline and gives those that could
// be read to got. It uses a script per board: several transactions can't share
// a pipeline in a cluster.
func (o *Origin) pages(ctx context.Context, op string, boards []rankcache.BoardID, n int, got func(int, rankcache.Page)) error {
	calls := make([]scriptCall, len(boards))
	for i, b := range boards {
		calls[i] = scriptCall{o.keys(b), []any{"ZREVRANGE", 0, n}}
	}
	var errs []error
	err := o.call(ctx, op, func(ctx context.Context) error {
		at := time.Now()
		for i, answer := range o.runAll(ctx, pageScript, calls) {
			page, err := toPage(calls[i].keys, answer, at)
			if err == nil {
				got(i, page)
			}
			errs = append(errs, err)
		}
		return firstOf(errs)
	})
	if err == nil {
		return nil
	}
	for i := range errs {
		errs[i] = explain(ctx, op+" "+string(boards[i]), errs[i])
	}
	return joinFew(errs)
}

// toPage reads the answer of page.lua.
func toPage(keys []string, answer *redis.Cmd, at time.Time) (page rankcache.Page, err error) {
	list, err := fields(keys[0], answer, 3)
	if err != nil {
		return page, err
	}
	if page.Stamp, err = toStamp(keys, list[1], list[2], at); err != nil {
		return page, err
	}
	rows, _ := list[0].([]any)
	page.Entries, err = pairsToEntries(keys[0], rows)
	return page, err
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// joinFew joins the first few errors: a thousand boards behind one Redis that
// is away fail for one reason.
func joinFew(errs []error) error {
	const few = 3
	var some []error
	for _, err := range errs {
		if err != nil && len(some) < few {
			some = append(some, err)
		}
	}
	return errors.Join(some...)
}
