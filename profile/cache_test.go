package profile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// fakeSource answers by a function, and checks that no member is loaded by
// two calls at once.
type fakeSource struct {
	t      testing.TB
	answer func(ctx context.Context, member string) ([]byte, error)

	dropped bool // members are dropped meanwhile, which allows a second call

	mu     sync.Mutex
	flying map[string]bool
	calls  int
	loads  map[string]int // by member
}

func newFake(t testing.TB, answer func(ctx context.Context, member string) ([]byte, error)) *fakeSource {
	return &fakeSource{t: t, answer: answer, flying: make(map[string]bool), loads: make(map[string]int)}
}

func (f *fakeSource) Load(ctx context.Context, members []string, answers []Answer) error {
	f.begin(members)
	defer f.end(members)
	for i, member := range members {
		json, err := f.answer(ctx, member)
		if err != nil {
			return err
		}
		answers[i].JSON = json
	}
	return nil
}

func (f *fakeSource) begin(members []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	for _, member := range members {
		if f.flying[member] && !f.dropped {
			f.t.Errorf("%s is loaded twice at once", member)
		}
		f.flying[member] = true
		f.loads[member]++
	}
}

func (f *fakeSource) end(members []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, member := range members {
		delete(f.flying, member)
	}
}

func (f *fakeSource) counts(member string) (calls, loads int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls, f.loads[member]
}

// nick is the profile that a healthy fake service has for each member.
func nick(_ context.Context, member string) ([]byte, error) {
	return fmt.Appendf(nil, `{"nick":"n-%s"}`, member), nil
}

// start returns a cache that runs until the test ends.
func start(t testing.TB, opts Options, source Source) *Cache {
	t.Helper()
	c, err := New(opts, source, slog.New(slog.NewTextHandler(io.Discard, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	run(t, c)
	return c
}

func run(t testing.TB, c *Cache) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		c.Close()
	})
	for c.store.cache.Load() == nil {
		time.Sleep(time.Millisecond)
	}
}

func members(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return list
}

func get(t testing.TB, c *Cache, member string) (string, int) {
	t.Helper()
	dst := make([][]byte, 1)
	missing := c.Get(t.Context(), []string{member}, dst)
	return string(dst[0]), missing
}

func TestPageIsOneCallAndThenNone(t *testing.T) {
	testkit.NoLeaks(t)
	source := newFake(t, nick)
	c := start(t, Options{}, source)
	page, dst := members("m", 50), make([][]byte, 50)
	for range 3 {
		missing, fresh := c.Join(t.Context(), page, dst)
		if missing != 0 || !fresh() {
			t.Fatalf("missing %d, fresh %v, want 0, true", missing, fresh())
		}
		for i := range page {
			if want, _ := nick(t.Context(), page[i]); string(dst[i]) != string(want) {
				t.Fatalf("row %d: %q, want %q", i, dst[i], want)
			}
		}
	}
	if calls, _ := source.counts("m0"); calls != 1 {
		t.Errorf("%d calls for one page read three times, want 1", calls)
	}
}

func TestUnknownMemberIsRemembered(t *testing.T) {
	source := newFake(t, func(context.Context, string) ([]byte, error) { return nil, nil })
	c := start(t, Options{}, source)
	for range 3 {
		if json, missing := get(t, c, "nobody"); json != "" || missing != 0 {
			t.Fatalf("%q, missing %d, want none and not missing", json, missing)
		}
	}
	if _, loads := source.counts("nobody"); loads != 1 {
		t.Errorf("loaded %d times, want 1", loads)
	}
}

func TestFailedLoadIsMissingAndTriedAgain(t *testing.T) {
	var broken = true
	source := newFake(t, func(_ context.Context, member string) ([]byte, error) {
		if broken {
			return nil, errors.New("down")
		}
		return nick(t.Context(), member)
	})
	c := start(t, Options{Retry: 20 * time.Millisecond}, source)
	if json, missing := get(t, c, "a"); json != "" || missing != 1 {
		t.Fatalf("%q, missing %d, want none and missing", json, missing)
	}
	broken = false // the first load has landed
	testkit.Eventually(t, 5*time.Second, func() error {
		if json, missing := get(t, c, "a"); json != `{"nick":"n-a"}` || missing != 0 {
			return fmt.Errorf("%q, missing %d", json, missing)
		}
		return nil
	})
}

// A process that ends before its cache ran closes it all the same.
func TestCloseWithoutRun(t *testing.T) {
	c, err := New(Options{}, newFake(t, nick), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	c.Close()
}
