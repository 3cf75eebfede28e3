package httpapi

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
)

func testBody(s string, fresh func() bool) *body {
	return newBody([]byte(s), &rankcache.Answer{Source: rankcache.SourceLocal}, fresh)
}

// TestRenewEncodesOnce walks the interleaving of the comment at renew: A and B
// both see no page, A encodes and keeps it, B must find it.
func TestRenewEncodesOnce(t *testing.T) {
	e := new(entry)
	if e.valid() != nil {
		t.Fatal("B sees a page")
	}
	a := e.renew(func() *body { return testBody("A", nil) })
	b := e.renew(func() *body { t.Error("B encodes too"); return nil })
	if a != b {
		t.Error("B was given another page")
	}
}

// TestBurstEncodesOnce: many readers of a page that has just been fixture.Published make
// one of them encode, though encoding waits for profiles.
func TestBurstEncodesOnce(t *testing.T) {
	env := newEnv()
	env.Profiles.Hold = make(chan struct{})
	s, err := New(env.reader(), Config{}, fixture.FailOnWarn(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	for range 100 {
		done.Go(func() {
			ctx := requestCtx("/v1/boards/local/top?profiles=1")
			if s.handle(ctx); ctx.Response.StatusCode() != 200 {
				t.Error(ctx.Response.String())
			}
		})
	}
	close(env.Profiles.Hold)
	done.Wait()
	if n := env.Profiles.Joins.Load(); n != 1 {
		t.Errorf("%d joins, want 1", n)
	}
}

// TestPreviousPageWhileProfilesChange: when only profiles have changed, readers
// that come while one encodes get the page as it was.
func TestPreviousPageWhileProfilesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stale atomic.Bool
		e := new(entry)
		old := e.renew(func() *body { return testBody("old", func() bool { return !stale.Load() }) })
		stale.Store(true)
		profiles, done := make(chan struct{}), make(chan *body)
		go func() {
			done <- e.renew(func() *body { <-profiles; return testBody("new", nil) })
		}()
		synctest.Wait() // it holds the lock and waits for profiles
		if got := e.renew(func() *body { t.Error("two encode"); return nil }); got != old {
			t.Errorf("got %s meanwhile, want the old page", got.data)
		}
		close(profiles)
		if got := <-done; string(got.data) != "new" || e.valid() != got {
			t.Errorf("got %s, want the new page, kept", got.data)
		}
	})
}

// TestServerDropsPages: what is kept for a board goes when the board is not read here any
// more, without a further request.
func TestServerDropsPages(t *testing.T) {
	env := newEnv()
	s := start(t, env, Config{})
	kept := func() weak.Pointer[pages] {
		s.get(t, "/v1/boards/hot/top")
		a := rankcache.One(t.Context(), s.reader, rankcache.Query{Board: "hot", Limit: 50, CopiesOnly: true})
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		return weak.Make(s.pagesOf(&a))
	}()
	env.Hot.Cool("hot")
	testkit.Eventually(t, 20*time.Second, func() error {
		if runtime.GC(); kept.Value() != nil {
			return errors.New("its pages are still in memory")
		}
		return nil
	})
}
