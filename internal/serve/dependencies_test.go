package serve

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rankcache/hotkey"
	"rankcache/internal/cli"
	"rankcache/internal/health"
)

// TestHotKeySource: own calls and new verdicts of the fleet show that the source answers, an old
// verdict that is read again does not.
func TestHotKeySource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := health.NewNeed(30 * time.Second)
		s := &Sidecar{services: health.Needs{cli.ServiceHotKeys: d}}
		var passed int
		verdicts := callWatch{s}.watchVerdicts(observed(func() { passed++ }))
		expect := func(when string, want health.State) {
			t.Helper()
			if got := d.Status(); got.State != want {
				t.Errorf("%s: %+v, want %s", when, got, want)
			}
		}
		first := hotkey.Verdict{At: time.Now().UnixMilli()}
		verdicts.Observe(first)
		expect("a verdict", health.OK)
		time.Sleep(31 * time.Second)
		verdicts.Observe(first)
		expect("the same again", health.Unknown)
		verdicts.Observe(hotkey.Verdict{At: first.At - time.Minute.Milliseconds()})
		expect("a poller whose clock is behind", health.OK)
		if passed != 3 {
			t.Errorf("%d verdicts were passed on, want 3", passed)
		}
		callWatch{s}.hotKeysAnswered(time.Second, &hotkey.CallError{Code: hotkey.CodeUnsupported, Err: errors.New("unknown command")})
		expect("a server without hot keys", health.Off)
		callWatch{s}.hotKeysAnswered(2*time.Second, &hotkey.CallError{Code: "AuthFailure", Err: errors.New("wrong key")})
		time.Sleep(2 * time.Second)
		expect("a refused call", health.Failing)
		callWatch{s}.hotKeysAnswered(time.Second, nil)
		expect("an answered call", health.OK)
	})
}

// observed calls a function for each verdict.
type observed func()

func (f observed) Observe(hotkey.Verdict) { f() }
