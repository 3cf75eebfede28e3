package origin

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// caller is of whom a call is, in its context.
type caller struct {
	kind    Kind
	timeout time.Duration // of the call itself, once it has begun
}

// waits is the kind of a call that waits in Redis until something comes, which tells nothing of how busy that is.
const waits Kind = ForLoad + 1

type callerKey struct{}

// maxTurn is for how long a background call waits for its turn.
const maxTurn = 2 * longestPause

// Background marks the calls of a context as those that wait while Redis is busy (see [Budget]), of a client of [Dial].
func Background(ctx context.Context) context.Context { return with(ctx, caller{kind: ForLook}) }

func with(ctx context.Context, c caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// asLoad marks the background calls of a context as those of a load.
func asLoad(ctx context.Context) context.Context {
	if callerOf(ctx).kind == ForApp {
		return ctx
	}
	return with(ctx, caller{kind: ForLoad})
}

// bound gives a call its time-out, which in the background begins with its turn.
func bound(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	c := callerOf(ctx)
	if c.kind == ForApp {
		return context.WithTimeout(ctx, timeout)
	}
	c.timeout = timeout
	return context.WithTimeout(with(ctx, c), maxTurn+timeout)
}

// budgetHook is the [redis.Hook] of the client of one master.
type budgetHook struct {
	timeout time.Duration

	mu     sync.Mutex
	budget *Budget
	wake   *time.Timer
	beats  beats
	beat   *time.Timer
}

func newBudgetHook(timeout time.Duration) *budgetHook {
	h := &budgetHook{timeout: timeout, budget: NewBudget(timeout, rand.Float64)}
	h.wake = time.AfterFunc(time.Hour, h.wakeUp)
	h.wake.Stop()
	h.beat = time.AfterFunc(time.Hour, h.onBeat)
	h.beat.Stop()
	return h
}

// DialHook changes nothing.
func (h *budgetHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook has a command wait for its turn.
func (h *budgetHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := h.do(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
		if err != nil && cmd.Err() == nil {
			cmd.SetErr(err)
		}
		return err
	}
}

// ProcessPipelineHook has a pipeline wait for its turn.
func (h *budgetHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		begun := false
		err := h.do(ctx, func(ctx context.Context) error { begun = true; return next(ctx, cmds) })
		for i := 0; i < len(cmds) && !begun; i++ {
			cmds[i].SetErr(err)
		}
		return err
	}
}

// do makes a call when it is its turn.
func (h *budgetHook) do(ctx context.Context, call func(context.Context) error) error {
	c := callerOf(ctx)
	if c.kind == waits {
		return call(with(ctx, caller{})) // what is asked of a new connection is no call that waits
	}
	if err := h.begin(ctx, c.kind); err != nil {
		return err
	}
	if c.kind != ForApp {
		ctx = with(ctx, caller{}) // what is asked of a new connection belongs to the call
		if c.timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.timeout)
			defer cancel()
		}
	}
	began := time.Now()
	err := call(ctx)
	h.end(c.kind, began, err)
	return err
}

// begin waits until a call may begin. Its error is ctx's.
func (h *budgetHook) begin(ctx context.Context, kind Kind) error {
	turn := make(chan struct{})
	h.mu.Lock()
	t := h.budget.Begin(kind, time.Now(), func() { close(turn) })
	h.plan()
	h.mu.Unlock()
	select {
	case <-turn:
		return nil
	default:
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.budget.Leave(t) {
		return ctx.Err()
	}
	return nil
}

func (h *budgetHook) end(kind Kind, began time.Time, err error) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	var reply redis.Error
	late := isTimeout(err) && now.Sub(began) > h.timeout/2 && h.beats.punctual(began, now)
	h.budget.End(kind, began, now, err == nil || errors.As(err, &reply), late)
	h.plan()
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// plan sets the timers, with the lock held.
func (h *budgetHook) plan() {
	now := time.Now()
	if due := h.budget.Due(now); due > 0 {
		h.wake.Reset(due)
	}
	if h.budget.underWay > 0 && h.beats.begin(now) {
		h.beat.Reset(beatEvery)
	}
}

func (h *budgetHook) wakeUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.budget.Wake(time.Now())
	h.plan()
}

func (h *budgetHook) onBeat() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.beats.take(time.Now(), h.budget.underWay > 0) {
		h.beat.Reset(beatEvery)
	}
}

// beatEvery is how often it is looked, while calls are under way, whether this process runs when it is to.
const beatEvery = 25 * time.Millisecond

// beats tell whether this process itself was late: a pod that is starved of CPU must not take Redis for busy.
type beats struct {
	due  time.Time // of the next one; zero: none is
	late time.Time // of the last one that came late
}

// begin returns whether beats begin now.
func (b *beats) begin(now time.Time) bool {
	begins := b.due.IsZero()
	if begins {
		b.due = now.Add(beatEvery)
	}
	return begins
}

// take takes a beat, and returns whether another one follows.
func (b *beats) take(now time.Time, more bool) bool {
	if now.Sub(b.due) > beatEvery {
		b.late = now
	}
	if b.due = (time.Time{}); more {
		b.begin(now)
	}
	return more
}

// punctual returns whether no beat was late in a time up to now.
func (b *beats) punctual(since, now time.Time) bool {
	return b.late.Before(since) && (b.due.IsZero() || now.Sub(b.due) <= beatEvery)
}
