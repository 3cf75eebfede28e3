package profile

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// versions answers {"v":n}, n rising with every load.
func versions(t testing.TB) *fakeSource {
	var n atomic.Int64
	return newFake(t, func(context.Context, string) ([]byte, error) {
		return fmt.Appendf(nil, `{"v":%d}`, n.Add(1)), nil
	})
}

func TestKeptPageIsFreshUntilItsOwnProfileChanges(t *testing.T) {
	c := start(t, Options{Deadline: time.Minute}, versions(t)) // a page that did not wait for its profiles is not fresh
	page, dst := members("p", 50), make([][]byte, 50)
	_, fresh := c.Join(t.Context(), page, dst)
	for range 2 { // the second look takes the short way
		if !fresh() {
			t.Fatal("a page just joined is not fresh")
		}
	}
	c.store.revisions.bump(strangerTo(c, page))
	if !fresh() {
		t.Error("not fresh after a stranger's change")
	}
	if !c.Drop(page[49]) {
		t.Fatal("nothing to drop")
	}
	if fresh() {
		t.Error("fresh after one of its profiles was dropped")
	}
	if _, fresh = c.Join(t.Context(), page, dst); !fresh() {
		t.Error("not fresh after it was joined again")
	}
}

// With 500 rows, some surely share a group of the change counters.
func TestRowsThatShareAGroupArriveTogether(t *testing.T) {
	c := start(t, Options{Batch: 500, Deadline: time.Minute}, versions(t))
	page := members("p", 500)
	if _, fresh := c.Join(t.Context(), page, make([][]byte, 500)); !fresh() {
		t.Error("a page just loaded in one call is not fresh")
	}
}

// A reader looks the member up, a refresh stores a new profile and counts the
// change, and only then the reader would note the count: it would hold the old
// profile and take it for fresh. see comes first for this reason.
func TestChangeDuringJoinIsNoticed(t *testing.T) {
	c := start(t, Options{}, versions(t))
	get(t, c, "a")
	s, key := newStamp(1), c.store.key("a")
	s.record(0, key, c.store.revisions.of(key))
	e, _ := c.store.get(key, "a")
	c.Drop("a")
	get(t, c, "a") // the refresh, between the reader's two steps
	if s.fresh(&c.store.revisions, c.now()) {
		t.Errorf("the page with %s is taken for fresh", e.profile())
	}
}

// The same race run for real: whenever a page is still fresh in the end, it
// holds what a new page would.
func TestFreshPageHoldsTheLatest(t *testing.T) {
	source := versions(t)
	source.dropped = true
	c := start(t, Options{}, source)
	page := []string{"a", "b", "c", "d"}
	for range 500 {
		dst := make([][]byte, len(page))
		var fresh func() bool
		var wg sync.WaitGroup
		wg.Go(func() { _, fresh = c.Join(t.Context(), page, dst) })
		wg.Go(func() {
			for _, member := range page {
				c.Drop(member)
				get(t, c, member)
			}
		})
		wg.Wait()
		if !fresh() {
			continue
		}
		for i, member := range page {
			if now, _ := get(t, c, member); now != string(dst[i]) {
				t.Fatalf("a fresh page holds %s of %s, which is now %s", dst[i], member, now)
			}
		}
	}
}

func TestMissingProfileArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFake(t, func(ctx context.Context, member string) ([]byte, error) {
			if member == "slow" {
				time.Sleep(200 * time.Millisecond)
			}
			return nick(ctx, member)
		})
		c := start(t, Options{}, source)
		get(t, c, "quick")
		page, dst := []string{"quick", "slow"}, make([][]byte, 2)
		began := time.Now()
		missing, fresh := c.Join(t.Context(), page, dst)
		if took := time.Since(began); missing != 1 || dst[0] == nil || dst[1] != nil || took != DefaultDeadline {
			t.Fatalf("missing %d, rows %q after %v, want slow missing after %v", missing, dst, took, DefaultDeadline)
		}
		if !fresh() {
			t.Error("not fresh while nothing has arrived")
		}
		time.Sleep(150 * time.Millisecond)
		if fresh() {
			t.Error("fresh after the missing profile has arrived")
		}
		if missing, fresh = c.Join(t.Context(), page, dst); missing != 0 || !fresh() {
			t.Errorf("missing %d, fresh %v, want 0, true", missing, fresh())
		}
	})
}

func TestReusedPageStartsTheRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Options{TTL: time.Minute}, versions(t))
		page, dst := []string{"a"}, make([][]byte, 1)
		_, fresh := c.Join(t.Context(), page, dst)
		time.Sleep(time.Minute)
		if fresh() {
			t.Fatal("fresh after its profile has expired")
		}
		_, fresh = c.Join(t.Context(), page, dst)
		if string(dst[0]) != `{"v":1}` {
			t.Errorf("%s, want the stale profile at once", dst[0])
		}
		synctest.Wait() // the refresh
		if fresh() {
			t.Error("fresh after its profile was refreshed")
		}
		if _, fresh = c.Join(t.Context(), page, dst); string(dst[0]) != `{"v":2}` || !fresh() {
			t.Errorf("%s, want the refreshed profile", dst[0])
		}
	})
}

// While the service is down, a stale page is looked at again now and then, not
// on every read.
func TestStalePageIsKeptBetweenRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		source := newFake(t, func(ctx context.Context, member string) ([]byte, error) {
			if down.Load() {
				return nil, context.DeadlineExceeded
			}
			return nick(ctx, member)
		})
		c := start(t, Options{TTL: time.Minute}, source)
		page, dst := []string{"a"}, make([][]byte, 1)
		c.Join(t.Context(), page, dst)
		down.Store(true)
		time.Sleep(time.Minute)
		_, fresh := c.Join(t.Context(), page, dst)
		synctest.Wait()
		if !fresh() || dst[0] == nil {
			t.Errorf("fresh %v, row %q, want the stale page kept", fresh(), dst[0])
		}
		time.Sleep(DefaultRetry)
		if fresh() {
			t.Error("fresh although it is time to try again")
		}
	})
}

func TestAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var known, down atomic.Bool
		known.Store(true)
		source := newFake(t, func(ctx context.Context, member string) ([]byte, error) {
			switch {
			case down.Load():
				return nil, context.DeadlineExceeded
			case !known.Load():
				return nil, nil
			}
			return nick(ctx, member)
		})
		c := start(t, Options{TTL: time.Minute, StaleFor: time.Hour, NegativeTTL: 10 * time.Second}, source)
		expect := func(when string, there bool, missing int) {
			t.Helper()
			if json, m := get(t, c, "a"); (json != "") != there || m != missing {
				t.Errorf("%s: %q, missing %d, want there %v, missing %d", when, json, m, there, missing)
			}
			synctest.Wait()
		}
		expect("at first", true, 0)
		down.Store(true)
		time.Sleep(time.Minute + time.Hour - 7*time.Second)
		expect("stale", true, 0)
		time.Sleep(7 * time.Second)
		expect("too old", false, 1)
		down.Store(false)
		known.Store(false)
		time.Sleep(10 * time.Second)
		expect("gone", false, 0)
		known.Store(true)
		time.Sleep(5 * time.Second)
		expect("known to be gone", false, 0)
		time.Sleep(5 * time.Second)
		expect("stale knowledge, refreshed behind", false, 0)
		expect("back", true, 0)
	})
}
