package origin

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// budgetTest is a budget in a time of its own.
type budgetTest struct {
	*Budget
	now    time.Time
	begun  map[string]int
	timing time.Duration // of a call
}

func newBudgetTest() *budgetTest {
	return &budgetTest{Budget: NewBudget(200*time.Millisecond, func() float64 { return 0.5 }), now: time.Unix(1e9, 0), begun: make(map[string]int), timing: time.Millisecond}
}

func (b *budgetTest) ask(kind Kind, name string) *Turn {
	return b.Begin(kind, b.now, func() { b.begun[name]++ })
}

// end ends a call that began a while ago.
func (b *budgetTest) end(kind Kind, late bool) {
	began := b.now
	if b.now = b.now.Add(b.timing); late {
		b.now = b.now.Add(200 * time.Millisecond)
	}
	b.End(kind, began, b.now, !late, late)
}

// TestBudgetIsForApps: calls of apps never wait; looks get what they leave, and loads what looks leave.
func TestBudgetIsForApps(t *testing.T) {
	b := newBudgetTest()
	for range 100 {
		b.ask(ForApp, "app")
	}
	b.ask(ForLook, "look")
	load := b.ask(ForLoad, "load")
	b.ask(ForLook, "look")
	if b.begun["app"] != 100 || b.begun["look"] != 1 || b.begun["load"] != 0 {
		t.Fatalf("begun: %v; want one of the background beside any calls of apps", b.begun)
	}
	b.end(ForLook, false)
	if due := b.Due(b.now); b.begun["look"] != 1 || due != shortestPause {
		t.Errorf("begun: %v, due after %v", b.begun, due)
	}
	for range 100 {
		b.end(ForApp, false)
	}
	b.now = b.now.Add(shortestPause)
	b.Wake(b.now)
	if b.begun["look"] != 2 || b.begun["load"] != 1 || b.Leave(load) {
		t.Errorf("begun: %v", b.begun)
	}
}

// TestBudgetHalves: at a time-out, once for calls that were under way together, down to one call after each pause, which doubles up to half a
// minute; answers that come soon bring it back.
func TestBudgetHalves(t *testing.T) {
	b := newBudgetTest()
	began := b.now
	for range 3 {
		b.ask(ForLook, "look")
	}
	b.now = b.now.Add(200 * time.Millisecond)
	for range 3 {
		b.End(ForLook, began, b.now, false, true)
	}
	if b.limit != firstCalls/2 {
		t.Errorf("%v calls after one round of time-outs", b.limit)
	}
	var pauses []time.Duration
	for range 10 {
		b.ask(ForLoad, "load")
		b.now = b.now.Add(b.Due(b.now))
		if b.Wake(b.now); b.own != 1 {
			t.Fatalf("%d calls under way when the pause is over", b.own)
		}
		b.end(ForLoad, true)
		pauses = append(pauses, b.pause)
	}
	if pauses[2] != shortestPause || pauses[3] != 2*shortestPause || pauses[9] != longestPause {
		t.Errorf("pauses %v", pauses)
	}
	for range 100 {
		b.now = b.now.Add(longestPause)
		b.ask(ForLook, "look")
		b.end(ForLook, false)
	}
	if b.pause != 0 || b.limit < firstCalls {
		t.Errorf("%v calls, a pause of %v after answers", b.limit, b.pause)
	}
}

// TestStarvedProcessBlamesItself: what times out while this process was late tells nothing of Redis.
func TestStarvedProcessBlamesItself(t *testing.T) {
	var b beats
	began := time.Unix(1e9, 0)
	b.begin(began)
	if b.take(began.Add(beatEvery), true); !b.punctual(began, began.Add(2*beatEvery)) {
		t.Error("punctual beats")
	}
	if b.punctual(began, began.Add(4*beatEvery)) {
		t.Error("a beat is due for long")
	}
	b.take(began.Add(4*beatEvery), true)
	if b.punctual(began, began.Add(5*beatEvery)) || !b.punctual(began.Add(5*beatEvery), began.Add(5*beatEvery)) {
		t.Error("a late beat counts for the calls that were under way")
	}
}

// TestHookHoldsBack: a call of the background has its time-out from its turn on, and one that never has a turn an error in each command.
func TestHookHoldsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newBudgetHook(200 * time.Millisecond)
		h.budget.limit = 1
		slow := h.ProcessHook(func(ctx context.Context, _ redis.Cmder) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(150 * time.Millisecond):
				return nil
			}
		})
		begin, ends := time.Now(), make(chan time.Duration, 2)
		for range 2 {
			go func() {
				ctx, cancel := bound(Background(t.Context()), h.timeout)
				defer cancel()
				if err := slow(ctx, redis.NewCmd(ctx)); err != nil {
					t.Error(err)
				}
				ends <- time.Since(begin)
			}()
		}
		if first, second := <-ends, <-ends; first != 150*time.Millisecond || second < first+150*time.Millisecond {
			t.Errorf("ended after %v and %v", first, second)
		}
		stuck, cancel := context.WithCancel(Background(t.Context()))
		go func() {
			_ = h.do(stuck, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		}()
		synctest.Wait()
		short, end := context.WithTimeout(Background(t.Context()), time.Second)
		defer end()
		cmds := []redis.Cmder{redis.NewCmd(short), redis.NewCmd(short)}
		err := h.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { t.Error("begun"); return nil })(short, cmds)
		for _, cmd := range cmds {
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(cmd.Err(), context.DeadlineExceeded) {
				t.Errorf("%v, of a command %v", err, cmd.Err())
			}
		}
		cancel()
		synctest.Wait()
	})
}
