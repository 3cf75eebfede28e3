package hotkey

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"rankcache/internal/testkit"
	"rankcache/internal/tick"
	"rankcache/wire"
)

// sharedAPI is the one API that a fleet calls; it records the caller and time of each call.
type sharedAPI struct {
	mu     sync.Mutex
	by     []string
	at     []time.Time
	answer func() (HotBoards, error)
}

// of returns the API as the poller of that id sees it.
func (a *sharedAPI) of(id string) Source { return apiCaller{a, id} }

type apiCaller struct {
	api *sharedAPI
	id  string
}

func (c apiCaller) Name() string { return "test" }

func (c apiCaller) Hot(context.Context) (HotBoards, error) {
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	c.api.by, c.api.at = append(c.api.by, c.id), append(c.api.at, time.Now())
	if c.api.answer != nil {
		return c.api.answer()
	}
	return HotBoards{Boards: []BoardCount{{"1_2_3", 9000}}}, nil
}

func (a *sharedAPI) calls() (by []string, at []time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.by[:len(a.by):len(a.by)], a.at[:len(a.at):len(a.at)]
}

// sidecar is one process of a fleet, as far as hot keys go.
type sidecar struct {
	id       string
	rdb      *redis.Client
	poller   *Poller
	reader   *VerdictReader
	verdicts atomic.Int64
}

func (s *sidecar) Observe(v Verdict) {
	if len(v.Boards) == 1 && v.Boards[0].Board == "1_2_3" {
		s.verdicts.Add(1)
	}
}

func newSidecar(t testing.TB, redisAddr, instance string, api *sharedAPI, cfg PollerConfig, i int) *sidecar {
	t.Helper()
	cfg.ID = fmt.Sprintf("pod-%d", i)
	s := &sidecar{id: cfg.ID, rdb: newClient(t, redisAddr)}
	names, reg := wire.DefaultNames(), prometheus.NewRegistry()
	var err error
	if s.poller, err = NewPoller(cfg, api.of(cfg.ID), s.rdb, names, instance, quiet(), reg); err != nil {
		t.Fatal(err)
	}
	s.reader = NewVerdictReader(s.rdb, names, instance, s.id, s, quiet(), reg)
	return s
}

// runFleetOf starts n sidecars that end with the test.
func runFleetOf(t *testing.T, n int, cfg PollerConfig, api *sharedAPI) (fleet map[string]*sidecar, instance string) {
	addr, instance := testkit.Redis(t), testkit.Name(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running errgroup.Group
	fleet = make(map[string]*sidecar)
	for i := range n {
		s := newSidecar(t, addr, instance, api, cfg, i)
		fleet[s.id] = s
		running.Go(func() error { return s.poller.Run(ctx) })
		running.Go(func() error {
			for range tick.NowAndEvery(ctx, second) {
				s.reader.Exchange(ctx, nil)
			}
			return nil
		})
	}
	t.Cleanup(func() {
		cancel()
		if err := running.Wait(); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return fleet, instance
}

// Two hundred sidecars with the defaults on one Redis: one of them polls, all of
// them hear of it; when that one is cut off, another goes on.
func TestOnePollerForTheFleet(t *testing.T) {
	t.Parallel()
	api, begin := &sharedAPI{}, time.Now()
	fleet, _ := runFleetOf(t, 200, PollerConfig{}, api)
	var leader string
	testkit.Eventually(t, 30*time.Second, func() error {
		by, _ := api.calls()
		if len(by) < 2 {
			return fmt.Errorf("%d calls", len(by))
		}
		leader = by[0]
		for _, s := range fleet {
			if s.verdicts.Load() == 0 {
				return fmt.Errorf("%s has not seen the verdict", s.id)
			}
		}
		return nil
	})
	if by, _ := api.calls(); by[1] != leader {
		t.Errorf("%s and %s polled, want one", leader, by[1])
	}
	killed := time.Now()
	_ = fleet[leader].rdb.Close() // it can neither renew nor release
	testkit.Eventually(t, 30*time.Second, func() error {
		by, at := api.calls()
		if last := len(by) - 1; by[last] != leader {
			t.Logf("%s took over %v after %s was cut off", by[last], at[last].Sub(killed).Round(time.Millisecond), leader)
			return nil
		}
		return errors.New("no other poller has taken over")
	})
	by, _ := api.calls()
	if most := int(time.Since(begin)/(DefaultPollEvery*9/10)) + 1; len(by) > most {
		t.Errorf("%d calls, want at most %d (one per %v)", len(by), most, DefaultPollEvery)
	}
}

// A leader that ends in good order hands the lease on at once.
func TestLeaderResigns(t *testing.T) {
	testkit.NoLeaks(t)
	addr, instance, api := testkit.Redis(t), testkit.Name(t), &sharedAPI{}
	cfg := PollerConfig{Every: 50 * time.Millisecond, Lease: time.Hour}
	for i := range 3 {
		s := newSidecar(t, addr, instance, api, cfg, i)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.poller.Run(ctx) }()
		testkit.Eventually(t, 10*time.Second, func() error {
			if by, _ := api.calls(); len(by) == 0 || by[len(by)-1] != s.id {
				return fmt.Errorf("%s does not lead, although it is the only one", s.id)
			}
			return nil
		})
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}
}

// A paused leader: its lease runs out unnoticed, another is elected, and then
// both believe to lead. Only one of them has the turn to call.
func TestTwoLeadersShareOneTurn(t *testing.T) {
	addr, instance, api := testkit.Redis(t), testkit.Name(t), &sharedAPI{}
	cfg := PollerConfig{Every: time.Hour}
	old, next := newSidecar(t, addr, instance, api, cfg, 0), newSidecar(t, addr, instance, api, cfg, 1)
	for range 3 {
		next.poller.poll(t.Context())
		old.poller.poll(t.Context())
	}
	if by, _ := api.calls(); len(by) != 1 {
		t.Errorf("calls by %v, want one", by)
	}
}

// What becomes of the pace and the verdict after each class of failure: a good
// verdict stays until it runs out, and nothing is published instead.
func TestPollerAfterFailures(t *testing.T) {
	for _, tt := range []struct {
		after    After
		stop     bool
		min, max time.Duration
	}{
		{AfterPause, false, 900 * time.Millisecond, 1100 * time.Millisecond},
		{AfterBackoff, false, 1400 * time.Millisecond, 2600 * time.Millisecond},
		{AfterOperator, true, 0, 0},
	} {
		t.Run(string(tt.after), func(t *testing.T) {
			api, names, instance := &sharedAPI{}, wire.DefaultNames(), testkit.Name(t)
			var answers []error
			cfg := PollerConfig{Every: time.Second, Answered: func(_ time.Duration, err error) { answers = append(answers, err) }}
			s := newSidecar(t, testkit.Redis(t), instance, api, cfg, 0)
			s.poller.poll(t.Context())
			good := s.rdb.Get(t.Context(), names.HotKey(instance)).Val()
			api.answer = func() (HotBoards, error) { return HotBoards{}, &CallError{"code", tt.after, errors.New("no")} }
			s.rdb.Del(t.Context(), s.poller.rateKey)
			pause, stop := s.poller.poll(t.Context())
			if stop != tt.stop || pause < tt.min || pause > tt.max {
				t.Errorf("pause %v, stop %v; want %v to %v, %v", pause, stop, tt.min, tt.max, tt.stop)
			}
			if now := s.rdb.Get(t.Context(), names.HotKey(instance)).Val(); good == "" || now != good {
				t.Errorf("verdict %q became %q", good, now)
			}
			if n := testutil.ToFloat64(s.poller.metrics.calls.WithLabelValues("test", "code")); n != 1 {
				t.Errorf("%v calls counted under their code", n)
			}
			if len(answers) != 2 || answers[0] != nil || answers[1] == nil {
				t.Errorf("%v, want an answer and a failure", answers)
			}
		})
	}
}

func TestBackoffGrowsAndEnds(t *testing.T) {
	s := newSidecar(t, testkit.Redis(t), testkit.Name(t), &sharedAPI{}, PollerConfig{Every: time.Second}, 0)
	limited := &CallError{"RequestLimitExceeded", AfterBackoff, errors.New("slow down")}
	var pause time.Duration
	for range 10 {
		pause, _ = s.poller.afterCall(limited)
	}
	if pause < 30*time.Second || pause > 2*maxBackoff {
		t.Errorf("pause %v after ten refusals, want about %v", pause, maxBackoff)
	}
	s.poller.afterCall(nil)
	if pause, _ = s.poller.afterCall(limited); pause > 3*time.Second {
		t.Errorf("pause %v after one refusal, want about 2s", pause)
	}
}

// A poller whose settings are wrong lets others try and does not ask again soon.
func TestStoppedPollerGivesTheLeaseAway(t *testing.T) {
	api := &sharedAPI{answer: func() (HotBoards, error) {
		return HotBoards{}, &CallError{"AuthFailure", AfterOperator, errors.New("no")}
	}}
	fleet, _ := runFleetOf(t, 5, PollerConfig{Every: 20 * time.Millisecond, Lease: 200 * time.Millisecond}, api)
	testkit.Eventually(t, 30*time.Second, func() error {
		if by, _ := api.calls(); len(by) < len(fleet) {
			return fmt.Errorf("%d calls", len(by))
		}
		return nil
	})
	by, _ := api.calls()
	seen := make(map[string]bool)
	for _, id := range by {
		if seen[id] {
			t.Errorf("%s asked again", id)
		}
		seen[id] = true
		if testutil.ToFloat64(fleet[id].poller.metrics.stopped) != 1 {
			t.Errorf("%s does not report that it has stopped", id)
		}
	}
}

// A verdict reader survives an outage of Redis and malformed verdicts.
func TestVerdictReader(t *testing.T) {
	addr, instance := testkit.Redis(t), testkit.Name(t)
	s := &sidecar{}
	rdb, key := newClient(t, addr), wire.DefaultNames().HotKey(instance)
	f := NewVerdictReader(rdb, wire.DefaultNames(), instance, "me", s, quiet(), prometheus.NewRegistry())
	step := func(wantResult string, wantErr bool) {
		t.Helper()
		if result, err := f.exchange(t.Context(), nil); result != wantResult || (err != nil) != wantErr {
			t.Errorf("%s, %v; want %s", result, err, wantResult)
		}
	}
	step("none", false)
	rdb.Set(t.Context(), key, "{}", time.Minute)
	step("bad", true)
	rdb.Set(t.Context(), key, Verdict{At: time.Now().UnixMilli(), Boards: []BoardCount{{"1_2_3", 1}}}.Encode(), time.Minute)
	step("ok", false)
	if s.verdicts.Load() != 1 {
		t.Error("the verdict was not passed on")
	}
	_ = rdb.Close()
	step("error", true)
}

func TestPollerConfig(t *testing.T) {
	for _, cfg := range []PollerConfig{{}, {ID: "a", Every: time.Millisecond}, {ID: "a", Lease: -1}} {
		if _, err := NewPoller(cfg, nil, nil, wire.DefaultNames(), "x", quiet(), prometheus.NewRegistry()); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
