package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

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
	largest []origin.Size // largest first
	logged  time.Time     // when progress was last written
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
	for i := range w.largest {
		found, err := w.origin.Measure(ctx, &w.largest[i], func() error { return w.wait(ctx) })
		if err != nil {
			return nil, err
		}
		if found {
			w.report.Largest = append(w.report.Largest, newBigItem(&w.largest[i]))
		}
		if err := w.wait(ctx); err != nil {
			return nil, err
		}
	}
	return &w.report, nil
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
		w.keep(s)
	}
	w.logProgress()
	return w.wait(ctx)
}

// keep keeps s if it is one of the largest, each key once: SCAN may return one twice.
func (w *bigWalk) keep(s origin.Size) {
	if len(w.largest) == w.top && larger(w.largest[w.top-1], s) < 0 {
		return
	}
	w.largest = slices.DeleteFunc(w.largest, func(kept origin.Size) bool { return kept.Key == s.Key })
	at, _ := slices.BinarySearchFunc(w.largest, s, larger)
	w.largest = slices.Insert(w.largest, at, s)
	w.largest = w.largest[:min(len(w.largest), w.top)]
}

// larger orders by members, falling, and then by key.
func larger(a, b origin.Size) int {
	return cmp.Or(cmp.Compare(b.Members, a.Members), cmp.Compare(a.Key, b.Key))
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
