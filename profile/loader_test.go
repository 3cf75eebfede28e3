package profile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankcache/internal/testkit"
)

// The page's lookup finds nothing; the flight that loads the profile is done and
// removed before the page looks for it.
func TestFlightThatIsDoneBetweenLookupAndEnqueueIsNotRepeated(t *testing.T) {
	source := newFake(t, nick)
	c := start(t, Options{}, source)
	get(t, c, "a") // is done after the lookup of the page that follows
	dst := make([][]byte, 1)
	s := newStamp(1)
	if missing := c.loader.wait(t.Context(), []int{0}, []string{"a"}, dst, s); missing != 0 || dst[0] == nil {
		t.Errorf("missing %d, row %q", missing, dst[0])
	}
	if !s.fresh(&c.store.revisions, c.now()) {
		t.Error("the page is not fresh")
	}
	if _, loads := source.counts("a"); loads != 1 {
		t.Errorf("loaded %d times, want 1", loads)
	}
}

// newFake reports a member that is loaded twice at once.
func TestThousandPagesShareFlights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFake(t, func(ctx context.Context, member string) ([]byte, error) {
			time.Sleep(50 * time.Microsecond)
			return nick(ctx, member)
		})
		c := start(t, Options{TTL: 30 * time.Millisecond, Deadline: time.Second}, source) // expires while it is read
		var wg sync.WaitGroup
		for n := range 1000 {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(n)))
				zipf := rand.NewZipf(random, 1.1, 1, 3000)
				for range testkit.Sized(2, 5) {
					readPage(t, c, zipf)
					time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		calls, loads := source.counts("z0")
		t.Logf("%d calls; the most wanted member was loaded %d times", calls, loads)
		if loads < 2 || loads > 100 {
			t.Errorf("the most wanted member was loaded %d times by all pages", loads)
		}
	})
}

func readPage(t *testing.T, c *Cache, zipf *rand.Zipf) {
	page, dst := make([]string, 50), make([][]byte, 50)
	for i := range page {
		page[i] = fmt.Sprintf("z%d", zipf.Uint64())
	}
	if missing, _ := c.Join(t.Context(), page, dst); missing != 0 {
		t.Errorf("missing %d", missing)
	}
	for i := range page {
		if want, _ := nick(t.Context(), page[i]); string(dst[i]) != string(want) {
			t.Errorf("%s was given %q", page[i], dst[i])
		}
	}
}

func TestProfileNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Options{TTL: time.Millisecond, Budget: minBudget, Deadline: time.Second}, versions(t))
		var wg sync.WaitGroup
		for n := range 50 {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(2, uint64(n)))
				latest := make(map[string]int)
				for range 200 {
					member := fmt.Sprint(random.IntN(100))
					json, _ := get(t, c, member)
					var v int
					fmt.Sscanf(json, `{"v":%d}`, &v)
					if v < latest[member] {
						t.Errorf("%s went from %d back to %d", member, latest[member], v)
					}
					latest[member] = v
					time.Sleep(time.Duration(random.IntN(1500)) * time.Microsecond)
				}
			})
		}
		wg.Wait()
	})
}

// What is loaded when the operator drops a profile may be what is to be
// forgotten: the page that waits may have it, the cache may not.
func TestDropForgetsWhatIsBeingLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{}, 1)
		n := 0
		source := newFake(t, func(context.Context, string) ([]byte, error) {
			<-gate
			n++
			return fmt.Appendf(nil, `{"v":%d}`, n), nil
		})
		c := start(t, Options{}, source)
		dst := make([][]byte, 1)
		var fresh func() bool
		var wg sync.WaitGroup
		wg.Go(func() { _, fresh = c.Join(t.Context(), []string{"a"}, dst) })
		synctest.Wait() // the load is under way
		if !c.Drop("a") {
			t.Error("nothing to drop")
		}
		gate <- struct{}{}
		wg.Wait()
		if string(dst[0]) != `{"v":1}` || fresh() {
			t.Errorf("%s, fresh %v, want the loaded profile and a page to be joined again", dst[0], fresh())
		}
		gate <- struct{}{}
		if json, _ := get(t, c, "a"); json != `{"v":2}` {
			t.Errorf("%s after Drop, want a new load", json)
		}
	})
}

// A page need not wait behind a long warm-up.
func TestPagesGoBeforeWarmUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFake(t, nick)
		slow := &slowCalls{source, 10 * time.Millisecond}
		c := start(t, Options{Calls: 1}, slow)
		c.Warm(members("w", 10_000)) // 100 calls, a second
		time.Sleep(time.Millisecond)
		if _, missing := get(t, c, "page"); missing != 0 {
			t.Error("a page's member waited for the warm-up")
		}
		if _, missing := get(t, c, "w9999"); missing != 0 {
			t.Error("a page's member that is also warmed waited for the warm-up")
		}
		time.Sleep(2 * time.Second)
		if _, loads := source.counts("w9999"); loads != 1 {
			t.Errorf("loaded %d times, want 1", loads)
		}
		for _, w := range members("w", 10_000) {
			if _, ok := c.store.get(c.store.key(w), w); !ok {
				t.Fatalf("%s was not warmed", w)
			}
		}
	})
}

// slowCalls takes its time for every call.
type slowCalls struct {
	*fakeSource
	takes time.Duration
}

func (s *slowCalls) Load(ctx context.Context, members []string, answers []Answer) error {
	time.Sleep(s.takes)
	return s.fakeSource.Load(ctx, members, answers)
}

func TestTooManyWaitingAreNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Options{Calls: 1, Pending: 200}, &slowCalls{newFake(t, nick), time.Hour})
		began := time.Now()
		var wg sync.WaitGroup
		for n := range 10 {
			wg.Go(func() {
				page := members(fmt.Sprint("p", n, "-"), 100)
				if missing := c.Get(t.Context(), page, make([][]byte, 100)); missing != 100 {
					t.Errorf("missing %d, want 100", missing)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took != DefaultDeadline {
			t.Errorf("took %v, want %v", took, DefaultDeadline)
		}
		c.loader.mu.Lock()
		defer c.loader.mu.Unlock()
		if c.loader.queue.members > 200 || len(c.loader.flights) > 300 {
			t.Errorf("%d members wait, %d flights, want at most 200 and one call", c.loader.queue.members, len(c.loader.flights))
		}
	})
}

func TestFailedMemberIsLeftAloneForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFake(t, func(context.Context, string) ([]byte, error) { return nil, context.DeadlineExceeded })
		c := start(t, Options{}, source)
		for range 10 {
			if _, missing := get(t, c, "a"); missing != 1 {
				t.Errorf("missing %d, want 1", missing)
			}
			time.Sleep(DefaultRetry / 5)
		}
		if _, loads := source.counts("a"); loads != 2 {
			t.Errorf("loaded %d times within two retries, want 2", loads)
		}
	})
}

// A profile that the full cache refuses is there for a while all the same.
func TestRefusedProfileIsNotLoadedForEveryPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		huge := make([]byte, maxJSON)
		copy(huge, "{")
		source := newFake(t, func(context.Context, string) ([]byte, error) { return huge, nil })
		c := start(t, Options{Budget: 64 << 20}, source)
		c.store.cache.Load().UpdateMaxCost(1) // refuse everything
		for range 100 {
			_, fresh := c.Join(t.Context(), []string{"a"}, make([][]byte, 1))
			if !fresh() {
				t.Fatal("the page is not fresh")
			}
		}
		if _, loads := source.counts("a"); loads != 1 {
			t.Errorf("loaded %d times by 100 pages, want 1", loads)
		}
		time.Sleep(keepRefused + sweepEvery)
		c.loader.mu.Lock()
		defer c.loader.mu.Unlock()
		if len(c.loader.flights) != 0 || len(c.loader.recent) != 0 || c.loader.recentBytes != 0 {
			t.Errorf("%d flights, %d recent results with %d bytes, want none after a while", len(c.loader.flights), len(c.loader.recent), c.loader.recentBytes)
		}
	})
}

func TestAfterRunPagesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFake(t, nick)
		c, err := New(Options{}, source, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		get(t, c, "a")
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		began := time.Now()
		if json, missing := get(t, c, "a"); json == "" || missing != 0 {
			t.Errorf("%q, missing %d: what is cached is gone", json, missing)
		}
		if _, missing := get(t, c, "b"); missing != 1 || time.Since(began) != 0 {
			t.Errorf("missing %d after %v, want 1 at once", missing, time.Since(began))
		}
		c.Close()
	})
}
