package testkit

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// fakeTB is a testing.TB that records how a test ended. What it does not override would panic.
type fakeTB struct {
	testing.TB
	name              string
	fatal, skip, logs string
	failed            bool
	cleanups          []func()
}

func (f *fakeTB) Name() string              { return f.name }
func (f *fakeTB) Helper()                   {}
func (f *fakeTB) Failed() bool              { return f.failed || f.fatal != "" }
func (f *fakeTB) Cleanup(c func())          { f.cleanups = append(f.cleanups, c) }
func (f *fakeTB) Log(args ...any)           { f.logs += fmt.Sprintln(args...) }
func (f *fakeTB) Fatal(args ...any)         { f.fatal = fmt.Sprint(args...); runtime.Goexit() }
func (f *fakeTB) Skip(args ...any)          { f.skip = fmt.Sprint(args...); runtime.Goexit() }
func (f *fakeTB) Error(args ...any)         { f.failed = true; f.Log(args...) }
func (f *fakeTB) Errorf(s string, a ...any) { f.Error(fmt.Sprintf(s, a...)) }
func (f *fakeTB) Fatalf(s string, a ...any) { f.Fatal(fmt.Sprintf(s, a...)) }
func (f *fakeTB) Logf(s string, a ...any)   { f.Log(fmt.Sprintf(s, a...)) }

// do runs a test body and its cleanups as package testing would.
func (f *fakeTB) do(body func(testing.TB)) *fakeTB {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := len(f.cleanups) - 1; i >= 0; i-- {
				f.cleanups[i]()
			}
		}()
		body(f)
	}()
	<-done
	return f
}

func wantIn(t *testing.T, what, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s %q lacks %q", what, got, w)
		}
	}
}
