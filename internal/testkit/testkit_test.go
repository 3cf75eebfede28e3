package testkit

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rankcache/internal/lab/servers"
)

func TestNameIsLegalAndNew(t *testing.T) {
	board := regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)
	seen := map[string]bool{}
	for _, test := range []string{"TestX", "TestX/größer als #01", "Test" + strings.Repeat("long/", 50)} {
		for range 100 {
			name := Name(&fakeTB{name: test})
			if !board.MatchString(name) || seen[name] {
				t.Fatalf("%q is not legal, or not new", name)
			}
			seen[name] = true
		}
	}
}

func TestEventuallyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		Eventually(t, time.Minute, func() error {
			if time.Since(start) < 10*time.Second {
				return errors.New("not yet")
			}
			return nil
		})
		if late := time.Since(start) - 10*time.Second; late > 50*time.Millisecond {
			t.Errorf("seen %v late", late)
		}
	})
}

func TestEventuallyFailsWithTheLastError(t *testing.T) {
	n := 0
	f := (&fakeTB{}).do(func(t testing.TB) {
		Eventually(t, 20*time.Millisecond, func() error { n++; return fmt.Errorf("look %d", n) })
	})
	wantIn(t, "fatal", f.fatal, "20ms", fmt.Sprintf("look %d", n))
}

func TestNoLeaksSeesAGoroutineLeftBehind(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	f := (&fakeTB{}).do(func(t testing.TB) {
		NoLeaks(t)
		go func() { <-stop }()
	})
	wantIn(t, "log", f.logs, "TestNoLeaksSeesAGoroutineLeftBehind")
}

// errMissing is what a machine without Kafka answers.
var errMissing = fmt.Errorf("broker: %w: install it", servers.ErrNotInstalled)

func TestAMissingServerSkipsUnlessItIsRequired(t *testing.T) {
	t.Setenv(EnvRequireReal, "")
	f := (&fakeTB{}).do(func(t testing.TB) { orSkip(t, errMissing) })
	wantIn(t, "skip", f.skip, "install it")

	t.Setenv(EnvRequireReal, "1")
	f = (&fakeTB{}).do(func(t testing.TB) { orSkip(t, errMissing) })
	wantIn(t, "fatal", f.fatal, "install it", EnvRequireReal)
}

func TestAServerThatDoesNotStartIsAFailure(t *testing.T) {
	t.Setenv(EnvRequireReal, "")
	f := (&fakeTB{}).do(func(t testing.TB) { orSkip(t, errors.New("port taken")) })
	wantIn(t, "fatal", f.fatal, "port taken")
}
