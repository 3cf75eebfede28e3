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
	top      int
	limit    int64         // of keys; 0: none
	pause    time.Duration // after each page, so that Redis serves others
	progress io.Writer

	report  bigReport
	largest []bigSet                                  // largest first
	shards  map[rankcache.BoardID]map[int]origin.Size // of boards that may be split, by their number
	logged  time.Time                                 // when progress was last written
}

// bigSet is one sorted set, or the shards of a split board.
type bigSet struct {
	key     string
	members int
	parts   []origin.Size
}

// errWalkLimit ends a walk.
var errWalkLimit = errors.New("the limit of keys is reached")

func (w *bigWalk) run(ctx context.Context) (*bigReport, error) {
	err := w.origin.Sizes(ctx, func(page []origin.Size) error { return w.add(ctx, page) })
	if err != nil && !errors.Is(err, errWalkLimit) {
		return nil, err
	}
	if w.report.Complete = err == nil; w.report.Complete && w.report.Keys != nil {
		w.report.Walked = *w.report.Keys // pages are not exactly full
	}
	w.report.Largest = []bigItem{}
	w.keepShards()
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

// measure returns a set as it is listed, nil if it is gone.
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
		if !w.isShard(s) {
			w.keep(bigSet{s.Key, s.Members, []origin.Size{s}})
		}
	}
	w.logProgress()
	return w.wait(ctx)
}

// keep keeps s if it is one of the largest, each key once: SCAN may return one twice.
func (w *bigWalk) keep(s bigSet) {
	if len(w.largest) == w.top && larger(w.largest[w.top-1], s) < 0 {
		return
	}
	w.largest = slices.DeleteFunc(w.largest, func(kept bigSet) bool { return kept.key == s.key })
	at, _ := slices.BinarySearchFunc(w.largest, s, larger)
	w.largest = slices.Insert(w.largest, at, s)
	w.largest = w.largest[:min(len(w.largest), w.top)]
}

// larger orders by members, falling, and then by key.
func larger(a, b bigSet) int {
	return cmp.Or(cmp.Compare(b.members, a.members), cmp.Compare(a.key, b.key))
}

// isShard notes a set that may be a shard, and reports whether it is one.
func (w *bigWalk) isShard(s origin.Size) bool {
	whole, shard, ok := class.CutShard(s.Board)
	if !ok {
		return false
	}
	if w.shards[whole] == nil {
		if w.shards == nil {
			w.shards = make(map[rankcache.BoardID]map[int]origin.Size)
		}
		w.shards[whole] = make(map[int]origin.Size)
	}
	w.shards[whole][shard] = s
	return true
}

// keepShards keeps the boards that are split if they are of the largest.
func (w *bigWalk) keepShards() {
	for whole, shards := range w.shards {
		set := bigSet{key: string(whole)}
		for _, s := range shards {
			set.members += s.Members
			set.parts = append(set.parts, s)
		}
		if w.isSplit(whole, shards) {
			w.keep(set)
			continue
		}
		for _, s := range set.parts {
			w.keep(bigSet{s.Key, s.Members, []origin.Size{s}})
		}
	}
}

// isSplit reports whether boards are the shards of one: there are two or more, those from 0 on, and there is no board of the whole one's id.
// Others are only called so, as those of seasons.
func (w *bigWalk) isSplit(whole rankcache.BoardID, shards map[int]origin.Size) bool {
	for shard := range shards {
		if shard >= len(shards) {
			return false
		}
	}
	return len(shards) > 1 && !slices.ContainsFunc(w.largest, func(kept bigSet) bool { return kept.parts[0].Board == whole })
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
