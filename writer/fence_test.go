package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// durableOn returns a writer on a server whose board is of a durable class.
func durableOn(t testing.TB, client redis.UniversalClient) *fixture {
	t.Helper()
	prefix := lastPart(testkit.Name(t))
	file, err := rooms.Parse(fmt.Appendf(nil, `classes: [{name: money, board: "%s:{zone}", period: none, durable: true}]`, prefix))
	must(t, err)
	h := quiet(t, func(o *Options) { o.Redis, o.Tiers = client, tiers{file: file} })
	h.board = rankcache.BoardID(prefix + ":7")
	return h
}

// atServer returns another writer of the board, on a server.
func (h *fixture) atServer(t testing.TB, client *redis.Client) *fixture {
	t.Helper()
	h = h.restarted(t)
	opts := h.opts
	opts.Redis = client
	w, err := New(opts)
	must(t, err)
	return &fixture{w, client, h.kafka, h.board, h.at}
}

// jobs returns the jobs of commands.
func (h *fixture) jobs(t testing.TB, commands ...string) (jobs []*job) {
	t.Helper()
	for _, c := range commands {
		j, err := h.accept([]byte(c), h.at, time.Now())
		must(t, err)
		jobs = append(jobs, j)
	}
	return jobs
}

// applyAll applies commands as those of one batch.
func (h *fixture) applyAll(t testing.TB, commands ...string) []*job {
	t.Helper()
	jobs := h.jobs(t, commands...)
	must(t, h.retry(t.Context(), "redis", func() error { return h.applier.apply(t.Context(), jobs) }))
	for _, j := range jobs {
		if !j.done || j.Refusal != nil {
			t.Errorf("order %s: done %v, refused %v", j.OrderID, j.done, j.Refusal)
		}
	}
	return jobs
}

// newEra gives a server another history, as a promotion does.
func newEra(t testing.TB, client *redis.Client) {
	t.Helper()
	must(t, client.Do(t.Context(), "DEBUG", "CHANGE-REPL-ID").Err())
}

// In each era a durable board has a run of its own, which goes on from the same state; what is closed
// or only repeated begins none. A board that was not durable before becomes so.
func TestDurableBoardHasARunOfEachEra(t *testing.T) {
	t.Parallel()
	client := redisClient(t, testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--enable-debug-command", "yes"}}).Addr())
	h := durableOn(t, client)
	plain := h.jobs(t, h.command("o0", "a"))
	plain[0].rules = rules{}
	must(t, h.applier.apply(t.Context(), plain))
	equal(t, "era", h.meta(t).Era, "")
	last := plain[0].Update
	for i := range 3 {
		now := h.applyAll(t, h.command(fmt.Sprint("o1-", i), "a"), h.command(fmt.Sprint("o2-", i), "b"))[0].Update
		equal(t, "seq", now.Seq, last.Seq+1)
		if now.Run <= last.Run {
			t.Errorf("run %d after %d", now.Run, last.Run)
		}
		m := h.meta(t)
		equal(t, "era", m.Era, eraOf(t, client))
		if i > 0 {
			equal(t, "a repeat of an earlier run", h.applyAll(t, h.command(fmt.Sprint("o3-", i-1), "c"))[0].past, true)
		}
		last = h.applyAll(t, h.command(fmt.Sprint("o3-", i), "c"))[0].Update
		equal(t, "in the same era", []uint64{last.Run, last.Seq}, []uint64{m.Run, m.Seq + 1})
		h.checkSum(t)

		stale := h.applier.eras.list()
		newEra(t, client)
		again := h.applyAll(t, h.command(fmt.Sprint("o3-", i), "c"))[0]
		equal(t, "repeat", []any{again.Duplicate, again.past, again.Update}, []any{true, false, last})
		equal(t, "its run", h.meta(t).Run, last.Run)
		h.applier.eras.known.Store(&stale)
	}
	h.set(t, func(m *wire.Meta) { m.Life = wire.LifeClosed })
	before := h.meta(t)
	jobs := h.jobs(t, h.command("late", "a"))
	must(t, h.applier.apply(t.Context(), jobs))
	equal(t, "closed", []any{jobs[0].Refusal == refusals["ended"], h.meta(t)}, []any{true, before})
}

// set changes the board's meta.
func (h *fixture) set(t testing.TB, change func(*wire.Meta)) {
	t.Helper()
	m := h.meta(t)
	change(&m)
	must(t, h.client.Set(t.Context(), h.opts.Names.MetaKey(h.board), wire.AppendMeta(nil, &m), redis.KeepTTL).Err())
}

// Each script that changes a durable board changes nothing on a server with another history.
func TestScriptsAreFenced(t *testing.T) {
	t.Parallel()
	client := redisClient(t, testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--enable-debug-command", "yes"}}).Addr())
	h := durableOn(t, client)
	h.applyAll(t, h.command("o1", "a"))
	ctx, a := t.Context(), h.applier
	jobs := h.jobs(t, h.command("o2", "a"), h.command("o1", "a"))
	script, keys, args := a.script(jobs)
	newEra(t, client)
	before := h.meta(t)
	equal(t, "apply", script.Run(ctx, client, keys, args...).Val(), any("s"))
	must(t, client.Set(ctx, a.names.AdopterKey(h.board), "mine", time.Minute).Err())
	equal(t, "prepare", prepareScript.Run(ctx, client, a.allKeys(h.board, &jobs[0].rules), h.at, newRun(time.Now()), 0, 3600, maxAtOnce, "",
		a.buckets.of(h.board), 0, 0, a.eras.list()).Val(), any("s"))
	equal(t, "meta", h.meta(t), before)
	equal(t, "scores", h.scores(t), map[string]float64{"a": 1})
	must(t, client.Del(ctx, a.names.AdopterKey(h.board)).Err())
	must(t, a.apply(ctx, jobs)) // it reads the eras again
	equal(t, "then", []any{jobs[0].Update.Seq, jobs[0].Duplicate, jobs[1].Update.Seq, jobs[1].Duplicate}, []any{uint64(2), false, uint64(1), true})
}

// While scripts are flushed by somebody else, and loaded by another writer, the sets of a board keep their
// sequence: one that is rejected is not overtaken.
func TestSequenceOutlivesScriptFlush(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	h := quiet(t, func(o *Options) { o.Redis = redisClient(t, server.Addr()) })
	other := h.atServer(t, redisClient(t, server.Addr()))
	other.board += "-other"
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				must(t, other.client.ScriptFlush(t.Context()).Err())
				other.applyAll(t, other.opCommand("set", fmt.Sprint("o", i), "m", "score", float64(i)))
			}
		}
	})
	defer func() { close(stop); wg.Wait() }()
	for round := range testkit.Sized(20, 200) {
		var commands []string
		for i := range maxBatch {
			commands = append(commands, h.opCommand("set", fmt.Sprint("o", round, "-", i), "m", "score", float64(i)))
		}
		jobs := h.applyAll(t, commands...)
		if !slices.IsSortedFunc(jobs, func(x, y *job) int { return int(x.Update.Seq) - int(y.Update.Seq) }) {
			t.Fatalf("round %d: the sequence is another one", round)
		}
		equal(t, "score", h.scores(t), map[string]float64{"m": maxBatch - 1})
	}
}

// held has pipelines with a script wait until it is let go, as those of a process that was stopped.
type held struct {
	waits, letGo chan struct{}
	replies      chan []any
}

func (d *held) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (d *held) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (d *held) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() != "evalsha" {
			return next(ctx, cmds)
		}
		select {
		case d.waits <- struct{}{}:
			<-d.letGo
		default:
			return next(ctx, cmds)
		}
		err := next(ctx, cmds)
		var all []any
		for _, cmd := range cmds {
			if cmd, ok := cmd.(*redis.Cmd); ok { // the others sample the hashes of orders
				all = append(all, cmd.Val())
			}
		}
		d.replies <- all
		return err
	}
}

// A writer is stopped with a call under way while its master is replaced, and takes over again: the call
// changes nothing. What each master has applied, also what is lost, has a run and seq of its own.
func TestStoppedWriterChangesNothingAfterTwoFailovers(t *testing.T) {
	t.Parallel()
	var nodes [2]*servers.Redis
	var clients [2]*redis.Client
	for i := range nodes {
		nodes[i] = testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--repl-diskless-sync-delay", "0"}})
		clients[i] = redisClient(t, nodes[i].Addr())
	}
	follow := func(i int) { // a server follows the other one
		host, port, _ := strings.Cut(nodes[1-i].Addr(), ":")
		must(t, clients[i].Do(t.Context(), "REPLICAOF", host, port).Err())
		testkit.Eventually(t, testTimeout, func() error {
			if info := clients[i].Info(t.Context(), "replication").Val(); !strings.Contains(info, "master_link_status:up") {
				return errors.New(info)
			}
			return nil
		})
		must(t, nodes[1-i].Replicated(t.Context()))
	}
	promote := func(i int) { must(t, clients[i].Do(t.Context(), "REPLICAOF", "NO", "ONE").Err()) }

	first := durableOn(t, clients[0])
	stopped, stale, second := first.atServer(t, redisClient(t, nodes[0].Addr())), first.atServer(t, clients[0]), first.atServer(t, clients[1])
	of := make(map[[2]uint64]string) // run and seq to order id
	orders := 0
	change := func(h *fixture) (all []wire.Update) {
		t.Helper()
		var commands []string
		for range 3 {
			orders++
			commands = append(commands, h.opCommand("set", fmt.Sprint("o", orders), "m", "score", float64(orders)))
		}
		for _, j := range h.applyAll(t, commands...) {
			at := [2]uint64{j.Update.Run, j.Update.Seq}
			if was, ok := of[at]; ok && was != j.OrderID {
				t.Errorf("run %d, seq %d: order %s, and %s before", at[0], at[1], j.OrderID, was)
			}
			of[at] = j.OrderID
			all = append(all, j.Update)
		}
		return all
	}
	change(first)
	change(stopped)
	change(stale)
	follow(1)

	d := &held{make(chan struct{}), make(chan struct{}), make(chan []any, 1)}
	stopped.client.AddHook(d)
	jobs := stopped.jobs(t, stopped.opCommand("set", "stopped", "m", "score", -1), stopped.opCommand("set", "stopped too", "m", "score", -2))
	ended := make(chan error, 1)
	go func() { ended <- stopped.applier.apply(t.Context(), jobs) }()
	<-d.waits

	promote(1)
	change(stale) // is lost
	change(second)
	follow(0)
	change(second)
	must(t, nodes[1].Replicated(t.Context()))
	promote(0)
	change(first) // it did not notice
	change(stale)
	before, scores := first.meta(t), first.scores(t)
	close(d.letGo)
	equal(t, "the stopped call", <-d.replies, []any{any("s")})
	must(t, <-ended)
	equal(t, "after it", []uint64{jobs[0].Update.Run, jobs[0].Update.Seq}, []uint64{before.Run, before.Seq + 1})
	equal(t, "scores before", scores["m"], float64(orders))
	equal(t, "scores", first.scores(t)["m"], -2.0)
	first.checkSum(t)
	if len(of) != orders {
		t.Errorf("%d states of %d orders", len(of), orders)
	}
}
