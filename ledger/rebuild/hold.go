package rebuild

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/tick"
	"rankcache/wire"
)

//go:embed lock.lua
var lockSource string

//go:embed renew.lua
var renewSource string

//go:embed release.lua
var releaseSource string

//go:embed switch.lua
var switchSource string

var (
	lockScript, renewScript     = redis.NewScript(wire.Script(lockSource)), redis.NewScript(renewSource)
	releaseScript, switchScript = redis.NewScript(releaseSource), redis.NewScript(wire.Script(switchSource))
)

const (
	// leaseTime is how long writers wait for a rebuild that has died. They then add up the board as it is.
	leaseTime = 10 * time.Second
	// absentTime is the same for a board that Redis lacks: then its first command begins a new life without members.
	absentTime     = 2 * time.Minute
	releaseTimeout = 5 * time.Second // bounds the end of a rebuild that was cancelled
)

// errLease reports a rebuild that was held up for longer than its lease, or another one.
var errLease = errors.New("another process has the board's lease: a second rebuild has begun, or this one was too slow")

// hold has the writers of one board wait, without refusing anything: the board is marked as one that is adopted.
type hold struct {
	*work
	lease   string
	before  string    // meta as it was, "": Redis did not have the board
	meta    wire.Meta // as it is
	history string    // that of the server of a durable board, its master_replid
}

func (w *work) leaseKeys() []string {
	return []string{w.opts.Names.MetaKey(w.board), w.opts.Names.AdopterKey(w.board)}
}

// hold has writers wait from now on, as soon as no writer adds up the board.
func (w *work) hold(ctx context.Context) (*hold, error) {
	for end := time.Now().Add(w.opts.Wait); ; {
		h, err := w.tryHold(ctx)
		if h != nil || err != nil {
			return h, err
		}
		if time.Now().After(end) {
			return nil, errors.New("a writer is adding up the board: try again later")
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pollEvery):
		}
	}
}

// tryHold returns nil if a writer adds up the board.
func (w *work) tryHold(ctx context.Context) (*hold, error) {
	absent := w.meta
	absent.State = rankcache.State{Run: max(newRun(absent.Now), w.meta.Run+1), Seq: w.place.Seq}
	absent.Adopting, absent.Members, absent.HasHidden = true, 0, w.rules.Hides
	reply, err := lockScript.Run(ctx, w.opts.Redis, w.leaseKeys(), w.keys.id, absent.Run, leaseTime.Milliseconds(), wire.AppendMeta(nil, &absent), absentTime.Milliseconds()).Result()
	if err != nil {
		return nil, err
	}
	list, ok := reply.([]any)
	switch {
	case reply == "h":
		return nil, nil
	case !ok || len(list) != 4:
		return nil, fmt.Errorf("%w: check that nothing else uses its key", wire.ErrMeta)
	}
	h := &hold{work: w}
	h.lease, _ = list[0].(string)
	h.before, _ = list[1].(string)
	value, _ := list[2].(string)
	h.history, _ = list[3].(string)
	if h.meta, err = wire.ParseMeta(value); err == nil && h.before != "" {
		var before wire.Meta
		before, err = wire.ParseMeta(h.before)
		w.done.Before = before.State
	}
	if err == nil && w.era != "" {
		err = h.stillLost()
	}
	if err == nil && (h.meta.HasHidden && !w.rules.Hides || h.meta.Buckets != w.meta.Buckets || h.meta.OrderLife != w.meta.OrderLife || h.meta.Turn > w.meta.Turn) {
		err = errMoved
	}
	if err == nil && h.meta.End != 0 && h.meta.Life < wire.LifeClosed {
		err = w.opts.Redis.ZAddNX(ctx, w.opts.Names.Ends, redis.Z{Score: float64(h.meta.End), Member: string(w.board)}).Err()
	}
	if err != nil {
		h.release(ctx)
		return nil, err
	}
	return h, nil
}

var errWhole = errors.New("the board is not lost (any more)") // tells that a board which was lost is there again

// stillLost returns nil if the board that was lost is so yet, and its server has the history in which it was.
func (h *hold) stillLost() error {
	if !strings.HasPrefix(h.history, h.era) {
		return fmt.Errorf("%w: Redis has failed over", errMoved)
	}
	if h.before == "" {
		return nil
	}
	before, err := wire.ParseMeta(h.before)
	if err == nil && before.Era == h.era {
		err = errWhole
	}
	return err
}

// renew keeps the lease until ctx ends, and cancels ctx if it is lost.
func (h *hold) renew(ctx context.Context, cancel context.CancelCauseFunc) {
	lasts, made := leaseTime, "0"
	if h.before == "" {
		lasts, made = absentTime, "1"
	}
	last := time.Now()
	for range tick.Every(ctx, leaseTime/5) {
		mine, err := renewScript.Run(ctx, h.opts.Redis, h.leaseKeys(), h.lease, lasts.Milliseconds(), made).Bool()
		if err == nil && mine {
			last = time.Now()
		} else if err == nil || time.Since(last) > leaseTime { // the switch looks at the lease, too
			cancel(errors.Join(errLease, err))
		}
	}
}

// release ends the wait of a rebuild that has failed. After a switch there is nothing to end.
func (h *hold) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := releaseScript.Run(ctx, h.opts.Redis, h.leaseKeys(), h.lease, h.before).Err(); err != nil {
		h.opts.Log.Warn("writers of the board wait until the lease has run out", "board", h.board, "at_most", absentTime, "err", err)
	}
}

// swap puts the temporary keys in the place of the board's, with a meta of a new run.
func (w *work) swap(ctx context.Context, h *hold, state rankcache.State) error {
	next := h.meta
	next.Adopting, next.HasHidden = false, w.rules.Hides
	next.State = rankcache.State{Run: max(h.meta.Run, state.Run) + 1, Seq: max(h.meta.Seq, state.Seq), Sum: w.sum, HasSum: true}
	if w.era != "" { // Redis may have more of a history that does not stand
		next.Seq = state.Seq
	}
	next.Members, next.Turn, next.Now = uint64(w.done.Members), w.meta.Turn, max(h.meta.Now, w.meta.Now) // #nosec G115 -- a length
	reply, err := switchScript.Run(ctx, w.opts.Redis, append(w.leaseKeys(), w.keys.pairs()...), h.lease, h.meta.Run, wire.AppendMeta(nil, &next),
		w.done.Members, w.keys.fields, h.history, w.era).Result()
	switch {
	case err != nil:
		return err
	case reply == "lease":
		return errLease
	case reply == "s":
		return fmt.Errorf("%w: Redis has failed over", errMoved)
	case reply != int64(1):
		return fmt.Errorf("%w: its temporary keys are not as they were written: Redis has failed over, or is full", errMoved)
	}
	w.done.After = next.State
	return nil
}
