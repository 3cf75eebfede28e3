package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// envSoak sets how long the soak lasts; it is not run without.
	envSoak = "RANKCACHE_SOAK"
	// envSeed repeats an earlier soak's choice of faults.
	envSeed   = "RANKCACHE_SEED"
	soakToken = "soak"
	// A process may keep some goroutines and heap more than it began with: pools,
	// connections, profiles. What leaks grows with every fault.
	goroutinesMore = 60
	heapMore       = 24 << 20
)

// calamity is a fault of the soak: it is caused and, some reads later, healed.
type calamity struct {
	name         string
	inject, heal func(w *env)
}

// calamities lose no acknowledged write, so the history has one line.
func calamities() []calamity {
	ctx := context.Background()
	return []calamity{
		{"Redis dies", func(w *env) { w.must(w.redis.Kill()) }, func(w *env) { w.must(w.redis.Restart(ctx)) }},
		{"Redis hangs", func(w *env) { w.must(w.redis.Pause()) }, func(w *env) { w.must(w.redis.Resume()) }},
		{"Redis is slow", func(w *env) { w.readsRedis.Delay(100 * time.Millisecond) }, func(w *env) { w.must(w.readsRedis.Restore()) }},
		{"the sidecar can't reach Redis", func(w *env) { w.readsRedis.Cut() }, func(w *env) { w.must(w.readsRedis.Restore()) }},
		{"the writer can't reach Redis", func(w *env) { w.writesRedis.Cut() }, func(w *env) { w.must(w.writesRedis.Restore()) }},
		{"the sidecar can't reach Kafka", func(w *env) { w.proxy.Cut() }, func(w *env) { w.must(w.proxy.Restore()) }},
		{"Kafka is slow", func(w *env) { w.proxy.Throttle(20 << 10) }, func(w *env) { w.must(w.proxy.Restore()) }},
		{"Kafka hangs", func(w *env) { w.must(w.broker.Pause()) }, func(w *env) { w.must(w.broker.Resume()) }},
		{"Kafka dies", func(w *env) { w.must(w.broker.Kill()) }, func(w *env) { w.must(w.broker.Restart(ctx)) }},
		{"the writer dies", func(w *env) { w.writing().Kill() }, func(w *env) { w.startWriter() }},
		{"poison records", func(w *env) { w.produce(w.poison()...) }, func(*env) {}},
		{"a transaction is aborted", func(w *env) { w.transaction(func() {}) }, func(*env) {}},
		{"the rooms file is broken", func(w *env) { w.writeRooms("rooms: 7\n") }, func(w *env) { w.writeRooms(w.roomsText()) }},
		{"the log is cut", func(w *env) { w.deleteRecords() }, func(*env) {}},
	}
}

// TestSoak runs one sidecar for the time in RANKCACHE_SOAK while faults happen
// at random and rooms come and go.
func TestSoak(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv(envSoak))
	if err != nil {
		t.Skipf("%s is %q: set it to how long the soak shall last, or run make soak", envSoak, os.Getenv(envSoak))
	}
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv(envSeed), 10, 64); err == nil {
		seed = s
	}
	t.Logf("%s=%d repeats this choice of faults", envSeed, seed)
	build(t)
	w := newEnv(t, newFixture(t, &clusters{all: t}), &fault{name: "soak"})
	w.tally.Due = func(q *Question) bool { return q.Board != w.boards[1].ID && redisAway(q) } // the second comes and goes
	w.args = append(w.args, "--hot-stale", "10m", "--admin-token", soakToken)
	s := &soak{env: w, rng: rand.New(rand.NewPCG(seed, 0)), until: time.Now().Add(lasts)}
	s.run()
}

// soak is one run.
type soak struct {
	*env
	rng    *rand.Rand
	until  time.Time
	rooms  int // that came and went
	judged int
}

func (s *soak) run() {
	s.startSteady()
	all := calamities()
	first := s.measure()
	s.Logf("at the start: %+v", first)
	for n := 1; time.Now().Before(s.until); n++ {
		s.suffer(all[s.rng.IntN(len(all))])
		s.moveRoom()
		s.judge()
		s.Logf("%d faults, now %+v", n, s.measure())
	}
	res := s.finish(0)
	s.Logf("%d answers, %d rooms came and went", s.judged+res.Answers, s.rooms)
	s.eventually(func() error { return s.measure().above(first) })
}

// suffer causes one fault, heals it and waits for the recovery.
func (s *soak) suffer(c calamity) {
	s.Helper()
	s.Logf("%s", c.name)
	s.oracle.Enter(Faulty)
	c.inject(s.env)
	s.waitReads(50 + s.rng.IntN(400))
	s.oracle.Enter(Recovering)
	c.heal(s.env)
	s.recovered()
	s.oracle.Enter(Recovered)
}

// moveRoom lets the second super-hot board leave or come back, by the rooms file
// or by the admin port: its reads are right from either source.
func (s *soak) moveRoom() {
	s.Helper()
	s.rooms++
	board := &s.boards[1]
	switch {
	case board.ID == s.posted:
		s.admin(http.MethodDelete, "/rooms?match="+string(board.ID), "")
		board.Tier, s.posted = "redis", ""
	case board.Tier == "local":
		board.Tier = "redis"
		s.writeRooms(s.roomsText())
	case s.rng.IntN(2) == 0:
		s.admin(http.MethodPost, "/rooms", fmt.Sprintf(`{"match":%q,"mode":"super-hot"}`, board.ID))
		board.Tier, s.posted = "local", board.ID
	default:
		board.Tier = "local"
		s.writeRooms(s.roomsText())
	}
	s.recovered()
	s.waitReads(50)
}

// admin changes something on the admin port.
func (s *soak) admin(method, path, body string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, s.sidecar().URL("admin", path), strings.NewReader(body))
	s.must(err)
	req.Header.Set("Authorization", "Bearer "+soakToken)
	resp, err := http.DefaultClient.Do(req)
	s.must(err)
	defer resp.Body.Close()
	if answer, _ := io.ReadAll(resp.Body); resp.StatusCode >= 300 {
		s.Errorf("%s %s %s: %d %s", method, path, body, resp.StatusCode, answer)
	}
}

// judge keeps the answers from piling up.
func (s *soak) judge() {
	s.Helper()
	v := s.oracle.Judge(false)
	s.judged += v.Judged
	s.report("wrong answers", len(v.Wrong), func(i int) string { return v.Wrong[i].String() })
}

// size is how large the sidecar is.
type size struct{ Goroutines, Heap int }

// above returns an error if the size is too far above an earlier one.
func (s size) above(first size) error {
	var errs []error
	if s.Goroutines > first.Goroutines+goroutinesMore {
		errs = append(errs, fmt.Errorf("%d goroutines, %d at the start", s.Goroutines, first.Goroutines))
	}
	if s.Heap > first.Heap+heapMore {
		errs = append(errs, fmt.Errorf("a heap of %d MiB, %d at the start", s.Heap>>20, first.Heap>>20))
	}
	return errors.Join(errs...)
}

// measure asks the sidecar how large it is, after a garbage collection.
func (s *soak) measure() size {
	s.Helper()
	admin := s.sidecar().URL("admin", "/debug/pprof/")
	return size{s.number(admin+"goroutine?debug=1", "goroutine profile: total "), s.number(admin+"heap?gc=1&debug=1", "# HeapAlloc = ")}
}

// number returns what follows a prefix in an answer.
func (s *soak) number(url, prefix string) int {
	s.Helper()
	resp, err := http.Get(url)
	s.must(err)
	defer resp.Body.Close()
	for lines := bufio.NewScanner(io.LimitReader(resp.Body, 64<<20)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), prefix); ok {
			n, err := strconv.Atoi(rest)
			s.must(err)
			return n
		}
	}
	s.Fatalf("%s has no %q", url, prefix)
	return 0
}
