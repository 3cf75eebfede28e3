package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"rankcache"
	"rankcache/wire"
)

// Posts that come while all pipelines are under way share the next one; those whose
// poster has gone meanwhile are not sent; each poster gets the outcome of its own job.
func TestPostsShareThePipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var sent []int
		var mu sync.Mutex
		failed := errors.New("failed")
		g := gatherer{groups: make(map[rankcache.BoardID]*postGroup), send: func(_ context.Context, jobs []*job) error {
			mu.Lock()
			sent = append(sent, len(jobs))
			mu.Unlock()
			<-release
			for _, j := range jobs {
				j.Outcome.Update.Member = j.Member
				j.done = j.Op == wire.OpIncr
			}
			return failed
		}}
		var posters sync.WaitGroup
		do := func(ctx context.Context, name string, op wire.Op, want error) {
			posters.Go(func() {
				j := &job{Command: &Command{Member: name, Op: op}}
				if err := g.do(ctx, "", j); !errors.Is(err, want) || err == nil && j.Update.Member != name {
					t.Errorf("%s: %v, %+v", name, err, j.Outcome)
				}
			})
		}
		for i := range maxFlights {
			do(t.Context(), fmt.Sprint("alone ", i), wire.OpIncr, nil)
			synctest.Wait()
		}
		for i := range 5 {
			do(t.Context(), fmt.Sprint("shares ", i), wire.OpIncr, nil)
		}
		do(t.Context(), "fails", wire.OpSet, failed)
		gone, leave := context.WithCancel(t.Context())
		do(gone, "goes", wire.OpIncr, context.Canceled)
		synctest.Wait()
		leave()
		synctest.Wait()
		close(release)
		posters.Wait()
		equal(t, "pipelines", sent, []int{1, 1, 1, 1, 6})
		synctest.Wait()
		equal(t, "groups left", len(g.groups), 0)
	})
}

// The jobs of one request share a pipeline in their sequence, also where it is full.
func TestJobsOfARequestStayTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		var sent [][]string
		g := gatherer{groups: make(map[rankcache.BoardID]*postGroup), send: func(_ context.Context, jobs []*job) error {
			names := make([]string, len(jobs))
			for i, j := range jobs {
				names[i], j.done = j.Member, true
			}
			mu.Lock()
			sent = append(sent, names)
			mu.Unlock()
			<-release
			return nil
		}}
		var posters sync.WaitGroup
		post := func(name string, n int) {
			var jobs []*job
			for i := range n {
				jobs = append(jobs, &job{Command: &Command{Member: fmt.Sprint(name, i)}})
			}
			posters.Go(func() {
				if err := g.do(t.Context(), "", jobs...); err != nil || anyNeed(jobs) {
					t.Errorf("%s: %v", name, err)
				}
			})
			synctest.Wait()
		}
		for range maxFlights {
			post("first ", 1)
		}
		post("long ", maxBatch-1)
		post("second ", 2)
		post("third ", 1)
		close(release)
		posters.Wait()
		equal(t, "pipelines", []int{len(sent), len(sent[maxFlights]) + len(sent[maxFlights+1])}, []int{maxFlights + 2, maxBatch + 2})
		for _, names := range sent[maxFlights:] {
			if i := slices.Index(names, "second 0"); i >= 0 && (i+1 == len(names) || names[i+1] != "second 1") {
				t.Error("a request was parted")
			}
		}
	})
}

// Concurrent posts, each sent by two posters, are applied once each.
func TestConcurrentPosts(t *testing.T) {
	h := quiet(t, nil)
	const posts = 60
	var posters sync.WaitGroup
	for i := range 2 * posts {
		posters.Go(func() {
			if _, err := h.do(t.Context(), []byte(h.command(fmt.Sprint("o", i/2), "m"))); err != nil {
				t.Error(err)
			}
		})
	}
	posters.Wait()
	equal(t, "scores", h.scores(t), map[string]float64{"m": posts})
	meta := h.meta(t)
	equal(t, "meta", []uint64{meta.Seq, meta.Sum}, []uint64{posts, wire.Hash("m", posts)})
}
