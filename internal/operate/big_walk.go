package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/tick"
	"rankcache/origin"
)

// bigWalk finds the largest sorted sets of Redis.
type bigWalk struct {
	origin   *origin.Origin
	sizesOf  func(context.Context, []rankcache.BoardID) ([]origin.Size, error)
	top      int
	limit    int64         // of keys; 0: none
	pause    time.Duration // after each page, so that Redis serves others
	progress io.Writer

	report  bigReport
	largest []bigSet  // largest first
	logged  time.Time // when progress was last written
}

// bigSet is one sorted set, or the shards of a split board.
type bigSet struct {
	key     string
	members int
	parts   []origin.Size
}

var errWalkLimit = errors.New("the limit of keys is reached") // ends a walk

func (w *bigWalk) run(ctx context.Context) (*bigReport, error) {
	err := w.origin.Sizes(ctx, func(page []origin.Size) error { return w.add(ctx, page) })
	if err != nil && !errors.Is(err, errWalkLimit) {
		return nil, err
	}
	if w.report.Complete = err == nil; w.report.Complete && w.report.Keys != nil {
		w.report.Walked = *w.report.Keys // pages are not exactly full
	}
	w.report.Largest = []bigItem{}
	for i := range w.largest {
		item, err := w.measure(ctx, &w.largest[i])
		if err != nil {
			return nil, err
		}
		if item != nil {
			w.report.Largest = append(w.report.Largest, *item)
		}
	}
	return &w.report, nil
}

func (w *bigWalk) measure(ctx context.Context, set *bigSet) (item *bigItem, err error) {
	for i := range set.parts {
		found, err := w.origin.Measure(ctx, &set.parts[i], func() error { return w.wait(ctx) })
		switch {
		case err != nil:
			return nil, err
		case !found:
		case item != nil:
			item.add(&set.parts[i])
		case len(set.parts) == 1:
			item = new(newBigItem(&set.parts[i]))
		default:
			item = &bigItem{Key: set.key, Board: rankcache.BoardID(set.key)}
			item.add(&set.parts[i])
		}
		if err := w.wait(ctx); err != nil {
			return nil, err
		}
	}
	return item, nil
}

// add takes the sorted sets of a page, and pauses.
func (w *bigWalk) add(ctx context.Context, page []origin.Size) error {
	if w.limit > 0 && w.report.Walked >= w.limit { // not before: that page may have been the last
		return errWalkLimit
	}
	w.report.Walked += origin.SizesPage
	for _, s := range page {
		if s.Members == 0 { // it is gone
			continue
		}
		w.report.SortedSets++
		if s.Meta != nil {
			w.report.Boards++
		}
		if err := w.keepWhole(ctx, s); err != nil {
			return err
		}
	}
	w.logProgress()
	return w.wait(ctx)
}

// keep keeps s if it is one of the largest, each key once: SCAN may return one twice.
func (w *bigWalk) keep(s bigSet) {
	if !w.enters(s) {
		return
	}
	w.largest = slices.DeleteFunc(w.largest, func(kept bigSet) bool { return kept.key == s.key })
	at, _ := slices.BinarySearchFunc(w.largest, s, larger)
	w.largest = slices.Insert(w.largest, at, s)
	w.largest = w.largest[:min(len(w.largest), w.top)]
}

// enters returns whether s is one of the largest so far.
func (w *bigWalk) enters(s bigSet) bool {
	return len(w.largest) < w.top || larger(w.largest[w.top-1], s) >= 0
}

// larger orders by members, falling, and then by key.
func larger(a, b bigSet) int {
	return cmp.Or(cmp.Compare(b.members, a.members), cmp.Compare(a.key, b.key))
}

// keepWhole keeps a sorted set, or the split board of which it is the first shard that comes by.
func (w *bigWalk) keepWhole(ctx context.Context, s origin.Size) error {
	set := bigSet{s.Key, s.Members, []origin.Size{s}}
	whole, shard, ok := class.CutShard(s.Board)
	if ok && (shard == 0 || w.enters(set)) {
		shards, err := w.shardsOf(ctx, whole)
		if err != nil {
			return err
		}
		if len(shards) > 1 {
			set = bigSet{key: string(whole), parts: shards}
			for _, s := range shards {
				set.members += s.Members
			}
		}
	}
	w.keep(set)
	return nil
}

// shardsOf returns a split board's shards, two or more from 0 on, without a board of the whole's id; else none.
func (w *bigWalk) shardsOf(ctx context.Context, whole rankcache.BoardID) ([]origin.Size, error) {
	sizes, err := w.sizesOf(ctx, append([]rankcache.BoardID{whole}, class.ShardIDs(whole, class.MaxShards)...))
	if err != nil || sizes[0].Members > 0 {
		return nil, err
	}
	shards := sizes[1:]
	isShard := func(s origin.Size) bool { return s.Board != "" && s.Members > 0 }
	if n := slices.IndexFunc(shards, func(s origin.Size) bool { return !isShard(s) }); n >= 0 {
		if slices.ContainsFunc(shards[n:], isShard) {
			return nil, nil
		}
		shards = shards[:n]
	}
	return shards, w.wait(ctx)
}

func (w *bigWalk) wait(ctx context.Context) error {
	if !tick.Sleep(ctx, w.pause) {
		return context.Cause(ctx)
	}
	return nil
}

func (w *bigWalk) logProgress() {
	if time.Since(w.logged) < progressEvery {
		return
	}
	w.logged = time.Now()
	walked, of := w.report.Walked, ""
	if keys := w.report.Keys; keys != nil {
		walked, of = min(walked, *keys), fmt.Sprintf(" of %d", *keys)
	}
	fmt.Fprintf(w.progress, "about %d%s keys are walked: %d sorted sets, %d of them boards\n", walked, of, w.report.SortedSets, w.report.Boards)
}
