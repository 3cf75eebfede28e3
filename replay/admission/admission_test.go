package admission_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/replay/admission"
)

// env stands for Redis, the memory and the part that fills boards.
type env struct {
	mu       sync.Mutex
	budget   int64
	sizes    map[rankcache.BoardID]*admission.Size
	err      error
	usage    map[rankcache.BoardID]admission.Usage
	followed []rankcache.BoardID
	calls    int // of Follow
}

func (e *env) Sizes(_ context.Context, boards []rankcache.BoardID) (sizes []*admission.Size, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range boards {
		if e.err != nil {
			sizes = append(sizes, nil)
		} else {
			sizes = append(sizes, e.sizes[b])
		}
	}
	return sizes, e.err
}

// set sets how many members a board has, with ids of 10 bytes.
func (e *env) set(b rankcache.BoardID, members int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sizes[b] = &admission.Size{Members: members, IDBytes: 10}
}

func (e *env) setUsage(b rankcache.BoardID, h admission.Usage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.usage[b] = h
}

func (e *env) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
}

func (e *env) wantFollowed(t *testing.T, want ...rankcache.BoardID) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Equal(e.followed, want) {
		t.Errorf("followed %v, want %v", e.followed, want)
	}
}

// start runs an admission with a budget of bytes.
func start(t *testing.T, budget int64) (*env, *admission.Admission) {
	t.Helper()
	e := &env{budget: budget, sizes: map[rankcache.BoardID]*admission.Size{}, usage: map[rankcache.BoardID]admission.Usage{}}
	a := admission.New(admission.Config{Budget: func() int64 {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.budget
	}, Origin: e, Every: time.Second, Log: slog.New(slog.DiscardHandler),
		Usage: func() map[rankcache.BoardID]admission.Usage {
			e.mu.Lock()
			defer e.mu.Unlock()
			return maps.Clone(e.usage)
		},
		Follow: func(boards []rankcache.BoardID) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.followed, e.calls = boards, e.calls+1
		}}, prometheus.NewRegistry())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return e, a
}

// of and fill are what a board holds, and takes more while it is filled.
func of(members int) int64   { return admission.Estimate(admission.Size{Members: members, IDBytes: 10}) }
func fill(members int) int64 { return admission.Fill(admission.Size{Members: members, IDBytes: 10}) }

func nextStep() {
	time.Sleep(time.Second) // virtual
	synctest.Wait()
}

func TestAdmitsInOrderWhatFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := start(t, of(1000)+of(300)+fill(1000))
		for b, n := range map[rankcache.BoardID]int{"first": 1000, "large": 800, "little": 100} {
			e.set(b, n)
		}
		a.Want([]rankcache.BoardID{"first", "large", "little"}, nil)
		synctest.Wait()
		e.wantFollowed(t, "first", "little")
		s := a.Status()
		if len(s.Refused) != 1 || s.Refused[0].Board != "large" || s.Refused[0].Members != 800 || s.Refused[0].Bytes != of(800) || !strings.Contains(s.Refused[0].Reason, "800 members") {
			t.Errorf("status %+v", s)
		}
		if s.Used != of(1000)+of(100) || s.Admitted != 2 || s.ForFilling != fill(1000) {
			t.Errorf("status %+v", s)
		}
	})
}

func TestARefusedBoardIsAdmittedOnceThereIsRoom(t *testing.T) {
	for name, makeRoom := range map[string]func(*env, *admission.Admission){
		"another is not wanted any more": func(_ *env, a *admission.Admission) { a.Want([]rankcache.BoardID{"b"}, nil) },
		"it has shrunk":                  func(e *env, _ *admission.Admission) { e.set("b", 10) },
		"another has shrunk": func(e *env, _ *admission.Admission) {
			e.setUsage("a", admission.Usage{Open: true, Size: admission.Size{Members: 10}, Bytes: 10})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, a := start(t, of(1000)+of(100)+fill(1000))
				e.set("a", 1000)
				e.set("b", 1000)
				a.Want([]rankcache.BoardID{"a", "b"}, nil)
				synctest.Wait()
				e.wantFollowed(t, "a")
				nextStep()
				e.wantFollowed(t, "a")
				makeRoom(e, a)
				nextStep()
				if got := a.Status(); len(got.Refused) != 0 || !slices.Contains(e.followed, "b") {
					t.Errorf("followed %v, status %+v", e.followed, got)
				}
			})
		})
	}
}

func open(members int) admission.Usage {
	return admission.Usage{Open: true, Size: admission.Size{Members: members, IDBytes: 10}, Bytes: of(members) / 2}
}

// Of boards that outgrow the budget the last named are given up to Redis, until the
// rest is within it; and one that was does not come and go.
func TestBoardsThatOutgrowTheBudgetAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := start(t, 4*of(10_000)+fill(10_000))
		all := []rankcache.BoardID{"a", "b", "c", "d"}
		for _, b := range all {
			e.set(b, 10_000)
			e.setUsage(b, open(10_000))
		}
		a.Want(all, nil)
		synctest.Wait()
		e.wantFollowed(t, all...)
		e.setUsage("a", open(10_200)) // above the budget, but not by a twentieth
		nextStep()
		nextStep()
		e.wantFollowed(t, all...)
		e.setUsage("a", open(15_000))
		nextStep()
		e.wantFollowed(t, all...) // it may be a copy that is gone in a moment
		nextStep()
		e.wantFollowed(t, "a", "b", "c")
		s := a.Status()
		if len(s.Refused) != 1 || !strings.Contains(s.Refused[0].Reason, "have grown to") || s.Used != of(15_000)+2*of(10_000) {
			t.Errorf("status %+v", s)
		}
		for range 5 {
			nextStep()
			e.wantFollowed(t, "a", "b", "c")
		}
		e.setUsage("a", open(9_000))
		nextStep()
		e.wantFollowed(t, all...)
	})
}

// What is left for boards shrinks when the rest of the process grows.
func TestABudgetThatShrinksGivesBoardsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := start(t, 2*of(10_000)+fill(10_000))
		e.set("a", 10_000)
		e.set("b", 10_000)
		a.Want([]rankcache.BoardID{"a", "b"}, nil)
		synctest.Wait()
		e.wantFollowed(t, "a", "b")
		e.mu.Lock()
		e.budget = of(10_000) + fill(10_000)
		e.mu.Unlock()
		nextStep()
		nextStep()
		e.wantFollowed(t, "a")
	})
}

// begins calls Fill in a goroutine and returns what it sends its done to.
func begins(a *admission.Admission, ctx context.Context, b rankcache.BoardID) chan func() {
	begun := make(chan func(), 1)
	go func() {
		if done, err := a.Fill(ctx, b); err == nil {
			begun <- done
		}
	}()
	synctest.Wait()
	return begun
}

// Boards are filled one after the other when memory is short, in the order of asking.
func TestFillsWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := start(t, 3*of(1000)+2*fill(1000))
		all := []rankcache.BoardID{"a", "b", "c"}
		for _, b := range all {
			e.set(b, 1000)
		}
		a.Want(all, nil)
		synctest.Wait()
		first, second := begins(a, t.Context(), "a"), begins(a, t.Context(), "b")
		ctx, cancel := context.WithCancel(t.Context())
		gone, third := begins(a, ctx, "c"), begins(a, t.Context(), "c")
		if len(first) != 1 || len(second) != 1 || len(gone)+len(third) != 0 {
			t.Fatalf("%d %d %d %d of the four fills have begun", len(first), len(second), len(gone), len(third))
		}
		if s := a.Status(); s.Filling != 2*fill(1000) || s.Waiting != 2 {
			t.Errorf("status %+v", s)
		}
		cancel()
		(<-first)()
		synctest.Wait()
		if len(third) != 1 {
			t.Fatal("the last fill waits though there is memory")
		}
		(<-second)()
		(<-third)()
		if s := a.Status(); s.Filling != 0 || s.Waiting != 0 {
			t.Errorf("status %+v", s)
		}
	})
}

// A board that takes more than there is must be filled, too: alone.
func TestAFillLargerThanWhatIsFreeGoesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := start(t, of(1000)+fill(1000))
		e.set("a", 1000)
		a.Want([]rankcache.BoardID{"a"}, nil)
		synctest.Wait()
		e.setUsage("a", open(1020))
		nextStep()
		done := <-begins(a, t.Context(), "a")
		if second := begins(a, t.Context(), "a"); len(second) != 0 {
			t.Error("two are filled")
		} else {
			done()
			(<-second)()
		}
	})
}

func TestABoardCountsForWhatItHoldsWhileItIsFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := start(t, of(1_000_000))
		e.set("a", 1000)
		a.Want([]rankcache.BoardID{"a"}, nil)
		synctest.Wait()
		e.setUsage("a", admission.Usage{Size: admission.Size{Members: 3}, Bytes: 300})
		nextStep()
		if got := a.Status().Used; got != of(1000) {
			t.Errorf("a board that begins to be filled counts for %d, want %d", got, of(1000))
		}
		e.setUsage("a", admission.Usage{Size: admission.Size{Members: 3}, Bytes: 3 * of(1000)})
		nextStep()
		if got := a.Status().Used; got != 3*of(1000) {
			t.Errorf("a board larger than expected counts for %d, want %d", got, 3*of(1000))
		}
	})
}

// While Redis is away no size is known: no verdict is given and no observer is called.
func TestUnknownSizesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := start(t, of(1000))
		e.fail(errors.New("redis is away"))
		e.set("a", 10)
		a.Want([]rankcache.BoardID{"a"}, nil)
		nextStep()
		if a.Decided() || e.calls != 0 {
			t.Errorf("decided %v, %d calls of Follow", a.Decided(), e.calls)
		}
		if s := a.Status(); len(s.Refused) != 1 || !strings.Contains(s.Refused[0].Reason, "redis is away") {
			t.Errorf("status %+v", s)
		}
		e.fail(nil)
		nextStep()
		e.wantFollowed(t, "a")
		if !a.Decided() {
			t.Error("not decided")
		}
		e.fail(errors.New("redis is away"))
		a.Want([]rankcache.BoardID{"b", "a"}, nil)
		nextStep()
		e.wantFollowed(t, "a") // stays, whatever Redis does
	})
}

func TestWithoutABudgetNothingIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := start(t, 0)
		e.fail(errors.New("redis is away"))
		a.Want([]rankcache.BoardID{"b", "a"}, nil)
		synctest.Wait()
		e.wantFollowed(t, "b", "a")
		a.Want(nil, nil)
		synctest.Wait()
		e.wantFollowed(t)
		if e.calls != 2 {
			t.Errorf("%d calls of Follow, want 2", e.calls)
		}
	})
}

func TestNoBoardIsADecisionToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := start(t, of(1))
		a.Want(nil, nil)
		synctest.Wait()
		if !a.Decided() || e.calls != 1 {
			t.Errorf("decided %v, %d calls of Follow", a.Decided(), e.calls)
		}
	})
}

func TestMetricsAreWellFormed(t *testing.T) {
	reg := prometheus.NewRegistry()
	admission.New(admission.Config{}, reg)
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	if n, err := testutil.GatherAndCount(reg); err != nil || n != 6 {
		t.Errorf("%d metrics, %v", n, err)
	}
}

// A board that lingers is let go for any other, and no more of them than have to be; it keeps none out and is not
// counted as refused.
func TestLingeringBoardsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := start(t, 3*of(1000)+fill(1000))
		for b, n := range map[rankcache.BoardID]int{"a": 1000, "next": 1000, "huge": 10_000, "ended": 1000, "older": 1000, "small": 1} {
			e.set(b, n)
		}
		a.Want([]rankcache.BoardID{"a"}, []rankcache.BoardID{"ended", "older"})
		synctest.Wait()
		e.wantFollowed(t, "a", "ended", "older")
		a.Want([]rankcache.BoardID{"a", "next"}, []rankcache.BoardID{"ended", "older"})
		nextStep()
		e.wantFollowed(t, "a", "next", "ended")
		s := a.Status()
		if len(s.Refused) != 0 || s.Admitted != 3 || s.LetGo != 1 || s.Used != 3*of(1000) {
			t.Errorf("status %+v", s)
		}
		a.Want([]rankcache.BoardID{"a", "next", "huge"}, []rankcache.BoardID{"ended", "older"})
		nextStep()
		e.wantFollowed(t, "a", "next", "ended") // to let it go would not help
		if s := a.Status(); len(s.Refused) != 1 || s.Refused[0].Board != "huge" || s.LetGo != 1 {
			t.Errorf("status %+v", s)
		}
		a.Want([]rankcache.BoardID{"a"}, []rankcache.BoardID{"ended", "older"})
		nextStep()
		e.wantFollowed(t, "a", "ended", "older") // there is room again
	})
}

// Of boards that outgrow the budget those that linger go first.
func TestLingeringBoardsGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, a := start(t, 2*of(10_000)+fill(10_000))
		e.setUsage("a", open(10_000))
		e.setUsage("ended", open(10_000))
		e.set("a", 10_000)
		e.set("ended", 10_000)
		a.Want([]rankcache.BoardID{"a"}, []rankcache.BoardID{"ended"})
		synctest.Wait()
		e.setUsage("a", open(15_000))
		nextStep()
		nextStep()
		e.wantFollowed(t, "a")
	})
}
