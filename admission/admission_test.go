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
	"rankcache/admission"
)

// world is Redis, the memory and whoever fills boards.
type world struct {
	mu       sync.Mutex
	sizes    map[rankcache.BoardID]*admission.Size
	err      error
	held     map[rankcache.BoardID]admission.Held
	followed []rankcache.BoardID
	told     int
}

func (w *world) Sizes(_ context.Context, boards []rankcache.BoardID) (sizes []*admission.Size, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range boards {
		if w.err != nil {
			sizes = append(sizes, nil)
		} else {
			sizes = append(sizes, w.sizes[b])
		}
	}
	return sizes, w.err
}

// set says how many members a board has, with ids of 10 bytes.
func (w *world) set(b rankcache.BoardID, members int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sizes[b] = &admission.Size{Members: members, IDBytes: 10}
}

func (w *world) hold(b rankcache.BoardID, h admission.Held) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[b] = h
}

func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

func (w *world) wantFollowed(t *testing.T, want ...rankcache.BoardID) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.followed, want) {
		t.Errorf("followed %v, want %v", w.followed, want)
	}
}

// start runs an admission with a budget for so many members in all, besides what
// each board takes however small it is.
func start(t *testing.T, budget int64) (*world, *admission.Admission) {
	t.Helper()
	w := &world{sizes: map[rankcache.BoardID]*admission.Size{}, held: map[rankcache.BoardID]admission.Held{}}
	a := admission.New(admission.Config{Budget: budget, Origin: w, Every: time.Second, Log: slog.New(slog.DiscardHandler),
		Held: func() map[rankcache.BoardID]admission.Held {
			w.mu.Lock()
			defer w.mu.Unlock()
			return maps.Clone(w.held)
		},
		Follow: func(boards []rankcache.BoardID) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.followed, w.told = boards, w.told+1
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
	return w, a
}

func of(members int) int64 { return admission.Estimate(admission.Size{Members: members, IDBytes: 10}) }

func nextLook() {
	time.Sleep(time.Second) // virtual
	synctest.Wait()
}

func TestAdmitsInOrderWhatFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := start(t, of(1000)+of(300))
		for b, n := range map[rankcache.BoardID]int{"first": 1000, "large": 800, "little": 100} {
			w.set(b, n)
		}
		a.Want([]rankcache.BoardID{"first", "large", "little"})
		synctest.Wait()
		w.wantFollowed(t, "first", "little")
		s := a.Status()
		if len(s.Refused) != 1 || s.Refused[0].Board != "large" || s.Refused[0].Bytes != of(800) || !strings.Contains(s.Refused[0].Reason, "800 members") {
			t.Errorf("status %+v", s)
		}
		if s.Used != of(1000)+of(100) || s.Admitted != 2 || s.OverBudget {
			t.Errorf("status %+v", s)
		}
	})
}

func TestARefusedBoardIsAdmittedOnceThereIsRoom(t *testing.T) {
	for name, makeRoom := range map[string]func(*world, *admission.Admission){
		"another is not wanted any more": func(_ *world, a *admission.Admission) { a.Want([]rankcache.BoardID{"b"}) },
		"it has shrunk":                  func(w *world, _ *admission.Admission) { w.set("b", 10) },
		"another has shrunk": func(w *world, _ *admission.Admission) {
			w.hold("a", admission.Held{Open: true, Size: admission.Size{Members: 10}, Bytes: 10})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, a := start(t, of(1000)+of(100))
				w.set("a", 1000)
				w.set("b", 1000)
				a.Want([]rankcache.BoardID{"a", "b"})
				synctest.Wait()
				w.wantFollowed(t, "a")
				nextLook()
				w.wantFollowed(t, "a")
				makeRoom(w, a)
				nextLook()
				if got := a.Status(); len(got.Refused) != 0 || !slices.Contains(w.followed, "b") {
					t.Errorf("followed %v, status %+v", w.followed, got)
				}
			})
		})
	}
}

// Boards that grow are kept, told of, and leave no room for others.
func TestAdmittedBoardsMayOutgrowTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := start(t, of(1000)+of(1000))
		w.set("a", 1000)
		w.set("b", 10)
		a.Want([]rankcache.BoardID{"a"})
		synctest.Wait()
		w.hold("a", admission.Held{Open: true, Size: admission.Size{Members: 5000}, Bytes: 400_000})
		nextLook()
		if s := a.Status(); !s.OverBudget || s.Used != of(5000) {
			t.Errorf("status %+v", s)
		}
		a.Want([]rankcache.BoardID{"a", "b"})
		nextLook()
		w.wantFollowed(t, "a")
		w.hold("a", admission.Held{Open: true, Size: admission.Size{Members: 900}, Bytes: 90_000})
		nextLook()
		w.wantFollowed(t, "a", "b")
		if s := a.Status(); s.OverBudget {
			t.Errorf("status %+v", s)
		}
	})
}

func TestABoardCountsForWhatItHoldsWhileItIsFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := start(t, of(1_000_000))
		w.set("a", 1000)
		a.Want([]rankcache.BoardID{"a"})
		synctest.Wait()
		w.hold("a", admission.Held{Size: admission.Size{Members: 3}, Bytes: 300})
		nextLook()
		if got := a.Status().Used; got != of(1000) {
			t.Errorf("a board that begins to be filled counts for %d, want %d", got, of(1000))
		}
		w.hold("a", admission.Held{Size: admission.Size{Members: 3}, Bytes: 3 * of(1000)})
		nextLook()
		if got := a.Status().Used; got != 3*of(1000) {
			t.Errorf("a board larger than expected counts for %d, want %d", got, 3*of(1000))
		}
	})
}

// While Redis is away nothing is known, so nothing is decided and nobody told.
func TestUnknownSizesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := start(t, of(1000))
		w.fail(errors.New("redis is away"))
		w.set("a", 10)
		a.Want([]rankcache.BoardID{"a"})
		nextLook()
		if a.Decided() || w.told != 0 {
			t.Errorf("decided %v, told %d times", a.Decided(), w.told)
		}
		if s := a.Status(); len(s.Refused) != 1 || !strings.Contains(s.Refused[0].Reason, "redis is away") {
			t.Errorf("status %+v", s)
		}
		w.fail(nil)
		nextLook()
		w.wantFollowed(t, "a")
		if !a.Decided() {
			t.Error("not decided")
		}
		w.fail(errors.New("redis is away"))
		a.Want([]rankcache.BoardID{"b", "a"})
		nextLook()
		w.wantFollowed(t, "a") // stays, whatever Redis does
	})
}

func TestWithoutABudgetNothingIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := start(t, 0)
		w.fail(errors.New("redis is away"))
		a.Want([]rankcache.BoardID{"b", "a"})
		synctest.Wait()
		w.wantFollowed(t, "b", "a")
		a.Want(nil)
		synctest.Wait()
		w.wantFollowed(t)
		if w.told != 2 {
			t.Errorf("told %d times, want 2", w.told)
		}
	})
}

func TestNoBoardIsADecisionToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := start(t, of(1))
		a.Want(nil)
		synctest.Wait()
		if !a.Decided() || w.told != 1 {
			t.Errorf("decided %v, told %d times", a.Decided(), w.told)
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
	if n, err := testutil.GatherAndCount(reg); err != nil || n != 5 {
		t.Errorf("%d metrics, %v", n, err)
	}
}
