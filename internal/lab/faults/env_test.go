package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

const (
	// settleWithin is how long anything may take to come to rest. Nothing is
	// asserted about time but this.
	settleWithin = 3 * time.Minute
	// steadyReads is how many answers make a row steady, and what is requested
	// after it has recovered.
	steadyReads = 150
	// faultyReads is how many reads a fault lasts at least.
	faultyReads = 500
)

// env is the servers, processes and load of one row.
type env struct {
	*testing.T
	*fixture
	fault *fault

	redis        *servers.Redis               // the one in use
	readsRedis   *Proxy                       // the sidecar's way to it
	writesRedis  *Proxy                       // the writer's
	args         []string                     // further arguments of serve
	writerArgs   []string                     // of write
	common       []string                     // of both
	newClient    func() redis.UniversalClient // of the Redis in use, if it is not one server
	whileDown    func()                       // called between the loss of writes and the sidecar's start
	sentinel     *servers.Sentinel            // if it has some
	notes        []string                     // figures that the table has beside the row's name
	rooms        string                       // file
	writerRooms  string                       // the writer's, the same unless a row sets another
	relay        *publisher                   // publishes updates if the writer does not
	feeder       *feeder                      // of a board without posts
	boardsBroker int32                        // the broker of the boards' topics; 0: there is one broker
	crowded      []net.Conn                   // connections that do nothing useful
	cgroup       string                       // the sidecar's folder of the memory controller, if any

	boards []Board
	posted rankcache.BoardID // is super-hot by the admin port, not by the file
	class  string            // of the rooms file, where the suite's boards have none: %s is the start of its ids
	result rankcache.BoardID // of that class
	oracle *Oracle
	tally  *Tally
	reads  *Reads
	writes *Writes
	stop   func() // ends the load

	mu     sync.Mutex // guards those that are restarted
	serve  *testkit.Child
	writer *testkit.Child
}

// newEnv makes the environment of a fault. It starts no rankcache yet.
func newEnv(t *testing.T, h *fixture, f *fault) *env {
	w := &env{T: t, fixture: h, fault: f, args: f.args, oracle: NewOracle(), tally: NewTally(f.due), rooms: filepath.Join(t.TempDir(), "rooms.yaml")}
	w.redis = w.newRedis()
	w.readsRedis, w.writesRedis = newProxy(w, w.redis.Addr()), newProxy(w, w.redis.Addr())
	name := testkit.Name(t)
	name = name[len(name)-8:]
	w.boards = []Board{
		{rankcache.BoardID(name + "_room"), "local", 120, 3},
		{rankcache.BoardID(name + "_named"), "local", 40, 2},
		{rankcache.BoardID(name + "_hot"), "hot", 120, 2},
		{rankcache.BoardID(name + "_small"), "redis", 60, 2},
	}
	w.writeRooms(w.roomsText())
	w.writerRooms = w.rooms
	w.reads = &Reads{Boards: slices.Clone(w.boards), Oracle: w.oracle, Tally: w.tally, Base: func() string { return w.sidecar().URL("data", "") }}
	w.writes = &Writes{Boards: slices.Clone(w.boards), Oracle: w.oracle, Prefix: name, Base: func() string { return w.writing().URL("scores", "") }}
	t.Cleanup(func() { w.fixture.restore(t) })
	return w
}

// newRedis starts a redis-server. With an append-only file that is written before
// each answer, a killed one loses nothing that it has acknowledged.
func (w *env) newRedis() *servers.Redis {
	w.Helper()
	return testkit.StartRedis(w, servers.RedisOptions{Args: []string{"--appendonly", "yes", "--appendfsync", "no"}})
}

// restore makes the fixture whole for the next row.
func (h *fixture) restore(t *testing.T) {
	if err := errors.Join(h.proxy.Restore(), h.late.Restore()); err != nil {
		t.Error(err)
	}
	if !h.broker.Running() {
		if err := h.broker.Restart(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// board returns the first board of a tier.
func (w *env) board(tier string) Board {
	for _, b := range w.boards {
		if b.Tier == tier {
			return b
		}
	}
	panic("no board of tier " + tier)
}

// roomsText is the rooms file: what makes the boards of the tiers that they have.
func (w *env) roomsText() string {
	text := fmt.Sprintf("rooms:\n- {uid: %q, mode: super-hot, boards: [%q]}\nboards:\n", w.boards[0].ID, w.boards[0].ID)
	for _, b := range w.boards[1:] {
		switch {
		case b.ID == w.posted, b.ID == w.result:
		case b.Tier == "local":
			text += fmt.Sprintf("- {match: %q, mode: super-hot}\n", b.ID)
		case b.Tier == "hot":
			text += fmt.Sprintf("- {match: %q, mode: hot}\n", b.ID)
		}
	}
	if w.class != "" {
		text += fmt.Sprintf(w.class, w.boards[0].ID+"_result")
	}
	return text
}

// writeRooms replaces the rooms file at once, as an operator's tool would.
func (w *env) writeRooms(text string) {
	w.Helper()
	next := w.rooms + ".next"
	if err := errors.Join(os.WriteFile(next, []byte(text), 0o644), os.Rename(next, w.rooms)); err != nil {
		w.Fatal(err)
	}
}

func (w *env) sidecar() *testkit.Child {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.serve
}

func (w *env) writing() *testkit.Child {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writer
}

// startSidecar starts rankcache serve, again if it has run before.
func (w *env) startSidecar() {
	w.Helper()
	w.useSidecar(w.launchSidecar())
}

// useSidecar sends the reads to c, once none is on its way to another.
func (w *env) useSidecar(c *testkit.Child) {
	w.reads.Pause()
	defer w.reads.Resume()
	w.replaceBy(c)
}

// replaceBy is called while no read is on its way.
func (w *env) replaceBy(c *testkit.Child) {
	w.mu.Lock()
	w.serve = c
	w.mu.Unlock()
	w.oracle.Restarted()
}

// launchSidecar starts one more.
func (w *env) launchSidecar() *testkit.Child {
	w.Helper()
	args := []string{"serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0", "--rooms", w.rooms,
		"--redis", "redis://" + w.readsRedis.Addr(), "--redis-timeout", "900ms", "--kafka", w.seeds,
		"--drain", "1s", "--give-up-after", "20s", "--hot-source", "none", "--hot-promote-rate", "100000", "--hot-stale", "2m"}
	return startListening(w, w.cgroup, slices.Concat(args, w.common, w.args)...)
}

// restartSidecar kills the sidecar and starts it again. Callers wait until it is
// ready, as a Service makes them.
func (w *env) restartSidecar() {
	w.Helper()
	w.reads.Pause()
	defer w.reads.Resume()
	w.sidecar().Kill()
	w.replaceBy(w.readySidecar())
}

// readySidecar starts one more and waits until it is ready.
func (w *env) readySidecar() *testkit.Child {
	w.Helper()
	next := w.launchSidecar()
	next.WaitReady(settleWithin)
	return next
}

// startWriter starts rankcache write, again if it has run before.
func (w *env) startWriter() {
	w.Helper()
	w.useWriter(w.launchWriter("--kafka", w.direct))
}

// useWriter sends the posts to c.
func (w *env) useWriter(c *testkit.Child) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writer = c
}

// launchWriter starts one more.
func (w *env) launchWriter(args ...string) *testkit.Child {
	w.Helper()
	all := []string{"write", "--scores", "127.0.0.1:0", "--health", "127.0.0.1:0", "--rooms", w.writerRooms, "--redis-timeout", "2s",
		"--redis", "redis://" + w.writesRedis.Addr(), "--topic-commands", w.commands(), "--group", w.commands(), "--command-partitions", "1"}
	return startListening(w, "", slices.Concat(all, w.common, w.writerArgs, args)...)
}

// commands is the topic of commands of this environment.
func (w *env) commands() string { return "commands_" + string(w.boards[0].ID) }

// startLoad begins reading and writing.
func (w *env) startLoad(seed uint64) {
	ctx, stop := context.WithCancel(context.Background())
	giveUp, abandon := context.WithCancel(context.Background())
	var reads, writes sync.WaitGroup
	readCtx, stopReads := context.WithCancel(context.Background())
	writes.Go(func() { w.writes.Run(ctx, giveUp, seed) })
	if !w.fault.losesWrites { // what is lost with a command that is not committed would come back unseen
		topic := w.commandTopic()
		writes.Go(func() { topic.run(ctx, giveUp, seed) })
	}
	reads.Go(func() { w.reads.Run(readCtx, seed) })
	w.stop = sync.OnceFunc(func() {
		stop()
		timer := time.AfterFunc(settleWithin, abandon)
		writes.Wait()
		timer.Stop()
		stopReads()
		reads.Wait()
	})
	w.Cleanup(func() {
		abandon()
		w.stop()
	})
}

// waitReads waits until n more reads of the phase of now have been answered.
func (w *env) waitReads(n int) {
	w.Helper()
	phase := w.oracle.Phase()
	n += w.tally.Asked(phase)
	w.eventually(func() error {
		if got := w.tally.Asked(phase); got < n {
			return fmt.Errorf("%d of %d reads in phase %d", got, n, phase)
		}
		return nil
	})
}

// waitSeen waits until callers of a tier have seen something.
func (w *env) waitSeen(tier, what string) {
	w.Helper()
	w.eventually(func() error {
		if w.tally.Seen(tier, what) < 10 {
			return fmt.Errorf("readers of %s boards have hardly seen %s: %s", tier, what, w.tally.saw(tier))
		}
		return nil
	})
}

func (w *env) eventually(cond func() error) {
	w.Helper()
	testkit.Eventually(w, settleWithin, cond)
}

// waitMetric waits until the sidecar shows a line among its metrics.
func (w *env) waitMetric(line string) {
	w.Helper()
	w.eventually(func() error {
		if code, text := w.sidecar().Get("health", "/metrics"); !strings.Contains("\n"+text, "\n"+line+"\n") {
			return fmt.Errorf("no metric %q: %d", line, code)
		}
		return nil
	})
}

// client returns a client of the Redis in use, past all proxies.
func (w *env) client() redis.UniversalClient {
	var c redis.UniversalClient
	if w.newClient != nil {
		c = w.newClient()
	} else {
		c = redis.NewClient(&redis.Options{Addr: w.redis.Addr(), Protocol: 2})
	}
	w.Cleanup(func() { c.Close() })
	return c
}

// seqIn returns the seq that a Redis has for a board.
func (w *env) seqIn(c redis.Cmdable, b rankcache.BoardID) uint64 {
	w.Helper()
	seq, err := seqOf(w.Context(), c, b)
	w.must(err)
	return seq
}

func seqOf(ctx context.Context, c redis.Cmdable, b rankcache.BoardID) (uint64, error) {
	value, err := c.Get(ctx, wire.DefaultNames().MetaKey(b)).Result()
	if err != nil {
		return 0, fmt.Errorf("meta of %s: %w", b, err)
	}
	meta, err := wire.ParseMeta(value)
	return meta.Seq, err
}

// note adds a figure to what the table has beside the row's name.
func (w *env) note(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
	w.Logf(format, args...)
}

// fetch asks the sidecar for a path, past the oracle.
func (w *env) fetch(path string, r *Reply) {
	w.Helper()
	resp, err := http.Get(w.sidecar().URL("data", path))
	w.must(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	w.must(err)
	r.read(resp.StatusCode, resp.Header, body)
}

// ask asks the sidecar, outside of the load; the answer is judged all the same.
func (w *env) ask(q Question) (*Ask, *Reply) {
	return w.reads.one(http.DefaultClient, NewTally(nil), q)
}

// wantSource waits until a board is answered from its tier, not older than
// what was written by now.
func (w *env) wantSource(b Board) {
	w.Helper()
	least := w.oracle.Reached(b.ID)
	w.eventually(func() error {
		a, r := w.ask(Question{Board: b.ID, Tier: b.Tier, Kind: KindTop, Limit: 100}) // as many as a hot page holds
		switch {
		case r.Err != nil:
			return r.Err
		case w.fault.losesWrites && w.oracle.Current(a, r) != "":
			return fmt.Errorf("%s is not what Redis has now: %s", b.ID, w.oracle.Current(a, r))
		case r.Source != b.Tier || r.Seq < least || r.Age > 3*time.Second:
			return fmt.Errorf("%s is answered by %s at %d, %v old; want %s at %d or later", b.ID, r.Source, r.Seq, r.Age, b.Tier, least)
		}
		return nil
	})
}

// recovered waits until every board is answered from its tier.
func (w *env) recovered() {
	w.Helper()
	for _, b := range w.boards {
		w.wantSource(b)
	}
}
