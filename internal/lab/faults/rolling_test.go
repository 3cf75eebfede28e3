package faults

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rankcache/class"
	"rankcache/internal/cli"
	"rankcache/internal/lab/servers"
	"rankcache/internal/run"
	"rankcache/internal/serve"
	"rankcache/internal/testkit"
	"rankcache/rooms"
)

const (
	// envRolling has processes be killed, and sets how many periods of rolling boards are tried and how long each is, as in 20x6s.
	envRolling = "RANKCACHE_ROLLING"
	// envRollingPeriod has the test binary be rankcache with periods of this length in place of 1m.
	envRollingPeriod = "RANKCACHE_TEST_ROLLING_PERIOD"
	// waitsPeriod is the shortest period with the controller's own times: it closes a board some 15 s after its period.
	waitsPeriod = 20 * time.Second
)

// TestRolling gives while periods end and processes are killed (SIGKILL): a board that is not answered as incomplete is the
// sum of its periods at its seq, on each tier, and has what was acknowledged before.
func TestRolling(t *testing.T) {
	periods, length, last := 6, 4*time.Second, 3
	text := os.Getenv(envRolling)
	kills := text != ""
	if kills { // it takes all of the machine
		var of string
		_, err := fmt.Sscanf(text, "%dx%s", &periods, &of)
		if err == nil {
			length, err = time.ParseDuration(of)
		}
		if err != nil {
			t.Fatalf("%s is %q: want periods and their length, as in 20x30s", envRolling, text)
		}
		last = 7
	} else {
		t.Parallel()
	}
	w := newRollingWorld(t, length, last, kills, false)
	w.startLoad(rollingLoadOptions{posters: 2, readers: 3, pause: 5 * time.Millisecond, batch: 1})
	whole := time.Duration(periods)*length + time.Until(w.load.period(time.Now()).End)
	for until := time.Now().Add(whole); time.Now().Before(until); {
		time.Sleep(min(length/2, time.Until(until))) // the periods end by the clock
		if kills && time.Until(until) > 3*length/2 {
			w.kill()
		}
	}
	w.finish(periods)
}

// TestRollingSwitch reads and gives as fast as this machine can while a period ends: no read fails, and none has anything of
// another window than its own. The boards of the periods and their sums are on other masters of a cluster.
func TestRollingSwitch(t *testing.T) {
	testkit.FullOnly(t, "all of the machine is loaded")
	w := newRollingWorld(t, waitsPeriod/2, 3, false, true)
	w.startLoad(rollingLoadOptions{posters: 4, readers: 24, pause: 20 * time.Millisecond, batch: 10})
	begun := time.Now()
	time.Sleep(5 * waitsPeriod / 2)
	took := time.Since(begun).Seconds()
	w.stop()
	t.Logf("%.0f reads/s, %.0f gifts/s", float64(w.load.reads.Load())/took, float64(w.load.acked.Load())/took)
	w.finish(9)
}

// TestRollingHour is the sum of the last 60 periods for as long as that and a little more, so that the first ones leave it: an
// hour of minutes by a clock that runs 30 times as fast.
func TestRollingHour(t *testing.T) {
	testkit.FullOnly(t, "it takes two minutes and a half")
	const last, periods, length = 60, 70, 2 * time.Second
	w := newRollingWorld(t, length, last, false, false)
	w.startLoad(rollingLoadOptions{posters: 1, readers: 3, pause: 50 * time.Millisecond, batch: 1})
	time.Sleep(periods*length + time.Until(w.load.period(time.Now()).End)) // the periods end by the clock
	w.finish(periods)
}

// rollingWorld is two writers, two controllers and three sidecars as processes, under a load that knows what the boards are.
type rollingWorld struct {
	*testing.T
	period time.Duration
	redis  *servers.Redis // nil: a cluster
	kafka  *servers.Kafka // nil: one that other tests have, too
	load   *rollingLoad
	args   []string // of all processes
	kills  map[string]int
	stop   func() // ends the load

	mu          sync.Mutex // guards those that are restarted
	writers     [2]*testkit.Child
	controllers [2]*testkit.Child
	sidecars    [3]*rollingSidecar
}

// rollingSidecar is one run of a sidecar. Reads that fail are due while it is good.
type rollingSidecar struct {
	*testkit.Child
	good atomic.Bool
}

func newRollingWorld(t *testing.T, period time.Duration, last int, kills, cluster bool) *rollingWorld {
	name := testkit.Name(t)
	w := &rollingWorld{T: t, period: period, kills: make(map[string]int)}
	var kafka string
	if kills {
		w.kafka = testkit.StartKafka(t, servers.KafkaOptions{})
		kafka = w.kafka.Addr()
	} else {
		kafka = testkit.Kafka(t)
	}
	prefix := name[len(name)-8:]
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	keep := time.Duration(last+1) * period // the least, which the default is at least
	if kills {
		keep = 72 * time.Hour // outlives that something is away
	}
	text := fmt.Sprintf(`classes:
- {name: gift, board: "%[1]s:{zone}:{period}", period: 1m, grace: 500ms, ops: [incr], keep: %[3]v}
- {name: gifts, board: "%[1]sr:{zone}:{period}", rolling: {of: gift, last: %[2]d}, mode: super-hot, dims: {zone: ["7"]}, lead: 2s}
- {name: gifts-hot, board: "%[1]sh:{zone}:{period}", rolling: {of: gift, last: %[2]d}, mode: hot, dims: {zone: ["7", "8"]}}
`, prefix, last, keep)
	w.must(os.WriteFile(file, []byte(text), 0o600))
	parsed, err := periodsOf(period)([]byte(text))
	w.must(err)
	w.load = newRollingLoad(prefix, parsed)
	w.args = append(w.startRedis(cluster), "--kafka", kafka, "--rooms", file, "--topic-commands", name, "--topic-refused", name+"-refused",
		"--topic-class-updates", name+"-class-", "--topic-ledger", name+"-ledger", "--topic-finals", name+"-finals", "--health", "127.0.0.1:0", "--redis-timeout", "3s")
	for n := range w.writers {
		w.startWriter(n)
	}
	for n := range w.controllers {
		w.startController(n)
	}
	for n := range w.sidecars {
		w.startSidecar(n)
	}
	return w
}

// startRedis returns the arguments of processes that use it.
func (w *rollingWorld) startRedis(cluster bool) []string {
	w.Helper()
	if !cluster {
		w.redis = testkit.StartRedis(w, servers.RedisOptions{Args: []string{"--appendonly", "yes", "--appendfsync", "no"}}) // outlives SIGKILL
		return []string{"--redis", "redis://" + w.redis.Addr()}
	}
	addrs := testkit.StartRedisCluster(w.T, servers.ClusterOptions{}).Addrs()
	return []string{"--redis", "redis://" + addrs[0] + "?addr=" + strings.Join(addrs[1:], "&addr="), "--redis-mode", "cluster"}
}

func (w *rollingWorld) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// start starts a rankcache with the short periods.
func (w *rollingWorld) start(args ...string) *testkit.Child {
	w.Helper()
	cmd := exec.Command(os.Args[0], slices.Concat(args, w.args)...)
	cmd.Env = append(os.Environ(), envRollingPeriod+"="+w.period.String())
	return testkit.StartChild(w, cmd).WaitListening()
}

func (w *rollingWorld) startWriter(n int) {
	w.Helper()
	c := w.start("write", "--scores", "127.0.0.1:0", "--group", w.load.prefix, "--group-instance", fmt.Sprint("w", n), "--command-partitions", "2", "--drain", "0s")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writers[n] = c
}

// startController starts one that leads if no other one does, or at once if periods are short.
func (w *rollingWorld) startController(n int) {
	w.Helper()
	key := "rankcache:controller"
	if w.period < waitsPeriod {
		key += fmt.Sprint(":", n)
	}
	w.controllers[n] = w.start("controller", "--group", w.load.prefix, "--controller-id", fmt.Sprint("c", n), "--key-controller", key, "--topic-keep", "0")
}

func (w *rollingWorld) startSidecar(n int) {
	w.Helper()
	s := &rollingSidecar{Child: w.start("serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain", "0s", "--hot-source", "none", "--hot-stale", "2m")}
	s.WaitReady(settleWithin)
	s.good.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sidecars[n] = s
}

func (w *rollingWorld) sidecar(n int) *rollingSidecar {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sidecars[n%len(w.sidecars)]
}

func (w *rollingWorld) writer(n int) *testkit.Child {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writers[n%len(w.writers)]
}

// kill kills a process and starts it again.
func (w *rollingWorld) kill() {
	w.Helper()
	what := []string{"writer", "controller", "sidecar", "Redis", "Kafka"}[rand.IntN(5)]
	n := rand.IntN(len(w.sidecars))
	w.kills[what]++
	switch what {
	case "writer":
		w.writer(n).Kill()
		w.startWriter(n % len(w.writers))
	case "controller":
		n %= len(w.controllers)
		w.controllers[n].Kill()
		w.startController(n)
	case "sidecar":
		s := w.sidecar(n)
		s.good.Store(false)
		s.Kill()
		w.startSidecar(n)
	case "Redis":
		w.load.away(true)
		w.must(w.redis.Kill())
		w.must(w.redis.Restart(context.Background()))
		w.load.away(false)
	case "Kafka":
		w.must(w.kafka.Kill())
		w.must(w.kafka.Restart(context.Background()))
	}
}

// startLoad begins to give and to read.
func (w *rollingWorld) startLoad(o rollingLoadOptions) {
	ctx, cancel := context.WithCancel(context.Background())
	var load sync.WaitGroup
	for n := range o.posters {
		load.Go(func() { w.load.give(ctx, func(try int) string { return w.writer(n+try).URL("scores", "") }, o) })
	}
	for n := range o.readers {
		load.Go(func() { w.load.readAll(ctx, func() *rollingSidecar { return w.sidecar(n) }, o) })
	}
	w.stop = sync.OnceFunc(func() { cancel(); load.Wait() })
	w.Cleanup(w.stop)
}

// finish ends the load and judges what was read.
func (w *rollingWorld) finish(periods int) {
	w.Helper()
	w.stop()
	w.load.settle(func(try int) string { return w.writer(try).URL("scores", "") })
	whole := w.load.judge()
	l := w.load
	w.Logf("%d gifts acknowledged, %d too late, %d posts repeated; %d reads, %d incomplete, %d failed while something was away; whole: %d boards, by source %v; killed: %v",
		l.acked.Load(), l.late, l.again.Load(), l.reads.Load(), l.incomplete, l.spared, whole, l.sources, w.kills)
	for i, text := range l.bad {
		if i < 5 {
			w.Error(text)
		}
	}
	if len(l.bad) > 5 {
		w.Errorf("%d in all", len(l.bad))
	}
	if least := periods - 5; whole < least || l.sources["local"] == 0 || l.sources["redis"] == 0 || l.sources["hot"] == 0 {
		w.Errorf("too little was whole: want %d boards at least, and pages of each tier", least)
	}
}

// periodsOf parses rooms files with a length in place of 1m.
func periodsOf(length time.Duration) func([]byte) (*rooms.File, error) {
	return func(data []byte) (*rooms.File, error) {
		return rooms.ParseWith(data, func(_, tz string) (class.Calendar, error) { return class.PartsOfDay(length, tz) })
	}
}

// runRolling is rankcache with periods of a length in place of 1m. It is killed.
func runRolling(args []string, length string) error {
	period, err := time.ParseDuration(length)
	if err != nil {
		return err
	}
	log, parse := slog.New(slog.NewJSONHandler(os.Stderr, nil)), periodsOf(period)
	var process interface{ Run(context.Context) error }
	switch args[0] {
	case "write":
		process, err = run.NewWriter(args[1:], parse, log)
	case "serve":
		process, err = serve.NewSidecar(args[1:], parse, log)
	case "controller":
		o := &run.ControllerOptions{}
		if period < waitsPeriod {
			o.Every, o.Posts = 50*time.Millisecond, 50*time.Millisecond
		}
		if err := cli.ParseArgs("controller", o, args[1:]); err != nil {
			return err
		}
		o.ParseRooms = parse
		return run.Control(context.Background(), o, log)
	default:
		return errors.New("want write, serve or controller")
	}
	if err != nil {
		return err
	}
	return process.Run(context.Background())
}
