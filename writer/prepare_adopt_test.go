package writer

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"rankcache/internal/httpserve"
	"rankcache/wire"
)

// zadd makes members past the writer.
func (h *fixture) zadd(t testing.TB, members int) {
	t.Helper()
	for first := 0; first < members; first += 1000 {
		var rows []redis.Z
		for i := first; i < min(first+1000, members); i++ {
			rows = append(rows, redis.Z{Member: fmt.Sprint("past", i), Score: float64(i) / 8})
		}
		must(t, h.client.ZAdd(t.Context(), string(h.board), rows...).Err())
	}
}

// A sorted set that no writer made, small or large, gets a run and a sum at its first
// command, and is adopted again after each change past the scripts.
func TestAdoption(t *testing.T) {
	t.Parallel()
	for _, members := range []int{1, maxAtOnce, maxAtOnce + 1, 2*adoptPage + 1, 2 * adoptPage} {
		h := quiet(t, nil)
		h.zadd(t, members)
		done := h.do1(t, h.opCommand("incr", "o1", "past0", "delta", 1))
		equal(t, "update", []any{done.Update.Seq, done.Update.Members, done.Update.HasSum}, []any{uint64(1), members, true})
		h.checkSum(t)
		must(t, h.client.ZRem(t.Context(), string(h.board), "past0").Err())
		again := h.do1(t, h.opCommand("incr", "o2", "new", "delta", 1))
		equal(t, "seq", again.Update.Seq, uint64(2))
		if again.Update.Run <= done.Update.Run {
			t.Errorf("%d members: run %d after %d", members, again.Update.Run, done.Update.Run)
		}
		h.checkSum(t)
		equal(t, "adoptions", testutil.ToFloat64(h.metrics.adoptions), 2.0)
		equal(t, "lease", h.client.Exists(t.Context(), h.opts.Names.AdopterKey(h.board)).Val(), int64(0))
	}
}

// Two writers meet a large board at once: one adds it up, the other's commands wait,
// and all are applied in one run.
func TestTwoWritersAdopt(t *testing.T) {
	h := quiet(t, nil)
	h.zadd(t, maxAtOnce+1)
	other := h.restarted(t)
	var wg sync.WaitGroup
	for i := range 20 {
		w := []*fixture{h, other}[i%2]
		wg.Go(func() {
			if _, err := w.do(t.Context(), []byte(h.opCommand("incr", fmt.Sprint("o", i), "m", "delta", 1))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	equal(t, "seq", h.meta(t).Seq, uint64(20))
	equal(t, "adoptions", testutil.ToFloat64(h.metrics.adoptions)+testutil.ToFloat64(other.metrics.adoptions), 1.0)
	h.checkSum(t)
}

// While another writer has the lease, repeats are answered, other posts wait for their
// deadline; when it has died, the board is adopted after its lease.
func TestAdopterDied(t *testing.T) {
	h := quiet(t, nil)
	h.do1(t, h.opCommand("incr", "o1", "m", "delta", 1))
	h.zadd(t, maxAtOnce+1)
	lease := h.opts.Names.AdopterKey(h.board)
	must(t, h.client.Set(t.Context(), lease, "another", time.Minute).Err())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil && testutil.ToFloat64(h.metrics.waits) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	_, err := h.do(ctx, []byte(h.opCommand("incr", "o2", "m", "delta", 1)))
	rec := httptest.NewRecorder()
	problemOf(err).Write(rec)
	checkProblem(t, "post", rec.Code, rec.Body.String(), httpserve.Problem{Status: 503, Code: "adopting"})
	equal(t, "retry", rec.Header().Get("Retry-After"), "1")
	equal(t, "waits", testutil.ToFloat64(h.metrics.waits), 1.0)
	equal(t, "state", []any{h.meta(t).Adopting, h.meta(t).HasSum}, []any{true, false})
	status, answer := h.post(t, h.opCommand("incr", "o1", "m", "delta", 1))
	if status != 200 || !strings.Contains(answer, `"duplicate":true`) {
		t.Errorf("repeat: %d %s", status, answer)
	}
	must(t, h.client.PExpire(t.Context(), lease, 100*time.Millisecond).Err())
	equal(t, "then", h.do1(t, h.opCommand("incr", "o2", "m", "delta", 1)).Update.Seq, uint64(2))
	h.checkSum(t)
}

// A post that waits for something tells what, also if its time is over while it asks again.
func TestRetryTellsWhyItTried(t *testing.T) {
	h := quiet(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	attempts := 0
	err := h.retry(ctx, "redis", func() error {
		if attempts++; attempts == 1 {
			return errAdopting
		}
		cancel()
		return context.Cause(ctx)
	})
	if !errors.Is(err, errAdopting) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// An adoption ends only if run, lease and number of members are what they were.
func TestAdoptionOfAChangedBoardBeginsAgain(t *testing.T) {
	h := quiet(t, nil)
	h.zadd(t, maxAtOnce+1)
	ctx, names := t.Context(), h.opts.Names
	must(t, h.client.Set(ctx, names.AdopterKey(h.board), "mine", time.Minute).Err())
	if err := h.applier.prepare(ctx, h.board, rules{}, ""); !errors.Is(err, errAdopting) {
		t.Fatal(err)
	}
	keys := []string{names.BoardKey(h.board), names.MetaKey(h.board), names.AdopterKey(h.board)}
	before := h.meta(t)
	history := fullEra(t, h.client)
	for name, args := range map[string][]any{"run": {before.Run + 1, "mine", maxAtOnce + 1, 7, history}, "lease": {before.Run, "other", maxAtOnce + 1, 7, history},
		"members": {before.Run, "mine", maxAtOnce, 7, history}, "history": {before.Run, "mine", maxAtOnce + 1, 7, "0" + history[1:] + "0"}} {
		equal(t, name, finishScript.Run(ctx, h.client, keys, args...).Val(), any(int64(0)))
		equal(t, name, h.meta(t), before)
	}
	equal(t, "finished", finishScript.Run(ctx, h.client, keys, before.Run, "mine", maxAtOnce+1, uint64(wire.SumMask), history).Val(), any(int64(1)))
	before.Adopting, before.HasSum, before.Sum = false, true, wire.SumMask
	equal(t, "meta", h.meta(t), before)
}

// A post that ends does not end the adoption that it began.
func TestAdoptionOutlivesThePost(t *testing.T) {
	h := quiet(t, nil)
	h.zadd(t, maxAtOnce+1)
	ctx, cancel := context.WithCancel(t.Context())
	h.client.AddHook(hookFunc(func(cmd redis.Cmder) {
		if cmd.Name() == "zrange" && cmd.Args()[1] == string(h.board) {
			cancel()
		}
	}))
	if _, err := h.do(ctx, []byte(h.opCommand("incr", "o1", "m", "delta", 1))); !errors.Is(err, errAdopting) {
		t.Error(err)
	}
	h.do1(t, h.opCommand("incr", "o2", "m", "delta", 1))
	equal(t, "adoptions", testutil.ToFloat64(h.metrics.adoptions), 1.0)
}

// hookFunc is called before each single command.
type hookFunc func(redis.Cmder)

func (f hookFunc) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f hookFunc) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		f(cmd)
		return next(ctx, cmd)
	}
}
func (f hookFunc) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A score changed by hand leaves a wrong sum, which only a sidecar notices: it names the
// board and its run, and a writer adopts it. What is of another run, or no board, is
// only forgotten.
func TestReadoption(t *testing.T) {
	for _, members := range []int{10, maxAtOnce + 1} {
		h := quiet(t, nil)
		h.zadd(t, members)
		h.do1(t, h.opCommand("incr", "o1", "past0", "delta", 1))
		before := h.meta(t)
		must(t, h.client.ZAdd(t.Context(), string(h.board), redis.Z{Member: "past1", Score: 1e6}).Err())
		absent := string(h.board) + "x"
		must(t, h.client.HSet(t.Context(), h.opts.Names.Readopt, string(h.board), before.Run-1, absent, 5, "no board", 5, string(h.board)+"y", "x").Err())
		must(t, readopter{h.applier.adopter}.readoptOnce(t.Context()))
		equal(t, "of another run", h.meta(t), before)
		equal(t, "absent", h.client.Keys(t.Context(), "*"+absent+"*").Val(), []string{})
		must(t, h.client.HSet(t.Context(), h.opts.Names.Readopt, string(h.board), before.Run).Err())
		must(t, readopter{h.applier.adopter}.readoptOnce(t.Context()))
		h.checkSum(t)
		after := h.meta(t)
		if after.Run <= before.Run || after.Seq != before.Seq {
			t.Errorf("state %s after %s", after.State, before.State)
		}
		equal(t, "hash", h.client.HLen(t.Context(), h.opts.Names.Readopt).Val(), int64(0))
	}
}

// A sidecar that finds a board being added up names no run: a writer ends what another has begun and begins nothing.
func TestReadoptionEndsWhatWasBegun(t *testing.T) {
	h := quiet(t, nil)
	h.zadd(t, maxAtOnce+1)
	ctx, lease := t.Context(), h.opts.Names.AdopterKey(h.board)
	must(t, h.client.Set(ctx, lease, "of one that has died", time.Minute).Err())
	if err := h.applier.prepare(ctx, h.board, rules{}, ""); !errors.Is(err, errAdopting) {
		t.Fatal(err)
	}
	begun := h.meta(t)
	must(t, h.client.Del(ctx, lease).Err())
	for range 2 {
		must(t, h.client.HSet(ctx, h.opts.Names.Readopt, string(h.board), 1).Err())
		must(t, readopter{h.applier.adopter}.readoptOnce(ctx))
		h.checkSum(t)
		equal(t, "run", h.meta(t).Run, begun.Run)
		equal(t, "hash", h.client.HLen(ctx, h.opts.Names.Readopt).Val(), int64(0))
	}
}

// A hash of orders that was lost is made again at the next turn, with the board's
// expiry.
func TestLostBucketIsMadeAgain(t *testing.T) {
	h := quiet(t, func(o *Options) { o.BoardLife = 1000 * time.Hour })
	h.do1(t, h.opCommand("incr", "o1", "m", "delta", 1))
	must(t, h.client.Del(t.Context(), h.applier.allKeys(h.board, &rules{})[2:]...).Err())
	h.do1(t, h.opCommand("incr", "o2", "m", "delta", 1))
	h.at0(h.at + 4000_000)
	must(t, h.applier.apply(t.Context(), []*job{{Command: &Command{Board: h.board, Member: "m", Op: wire.OpDelete, OrderID: "o3", At: h.at + 4000_000}}}))
	keys := h.applier.allKeys(h.board, &rules{})
	end := h.client.PExpireTime(t.Context(), keys[1]).Val()
	for _, key := range keys[2:] {
		equal(t, key, []any{h.client.PExpireTime(t.Context(), key).Val(), h.client.HExists(t.Context(), key, "").Val()}, []any{end, true})
	}
}

// A board with the bit primed is changed as any other; it loses the bit when something else has changed it.
func TestPrimedBoard(t *testing.T) {
	t.Parallel()
	for _, addAtOnce := range []int{maxAtOnce, 0} {
		h := quiet(t, nil)
		h.applier.birth.addAtOnce = addAtOnce
		h.do1(t, h.opCommand("incr", "o1", "m", "delta", 1))
		m := h.meta(t)
		m.Primed, m.Life = true, wire.LifeClosing
		must(t, h.client.Set(t.Context(), h.opts.Names.MetaKey(h.board), wire.AppendMeta(nil, &m), redis.KeepTTL).Err())
		done := h.do1(t, h.opCommand("incr", "o2", "m", "delta", 1))
		equal(t, "run and seq", []uint64{done.Update.Run, done.Update.Seq}, []uint64{m.Run, 2})
		equal(t, "primed", h.meta(t).Primed, true)
		must(t, h.applier.prepare(t.Context(), h.board, rules{}, "")) // as at a turn
		equal(t, "primed, life", []any{h.meta(t).Primed, h.meta(t).Life}, []any{true, wire.LifeClosing})
		equal(t, "adoptions", testutil.ToFloat64(h.metrics.adoptions), 0.0)
		h.zadd(t, 1)
		h.do1(t, h.opCommand("incr", "o3", "m", "delta", 1))
		equal(t, "primed, life", []any{h.meta(t).Primed, h.meta(t).Life}, []any{false, wire.LifeClosing})
		equal(t, "adoptions", testutil.ToFloat64(h.metrics.adoptions), 1.0)
		h.checkSum(t)
	}
}
