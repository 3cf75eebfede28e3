// Command rankcache answers leaderboard reads beside an app from local memory.
//
// main only prints and exits; run does the work and can be called by a test.
// Every sub-command has a file of its own; config.go gives them their settings
// and wire.go joins the folders of the star.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the build (-ldflags "-X main.version=…").
var version = "dev"

// Exit codes, documented in README.md and in rankcache --help.
const (
	exitOK       = 0   // done; for a long-running command: stopped by one signal, after its drain
	exitFailed   = 1   // what was asked for did not work
	exitUsage    = 2   // bad flag, configuration key or argument
	exitDiffers  = 3   // demo: the local board is not Redis's
	exitSignaled = 130 // a second signal ended it at once
)

// exitError carries the exit code of a failure that isn't exitFailed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usageError marks a mistake of the caller.
func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func main() {
	ctx := untilSignal()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "rankcache:", err)
	}
	os.Exit(exitCode(err))
}

// untilSignal returns a context that the first SIGINT or SIGTERM ends. A second
// one ends the process at once, by its own hand: the kernel's default would do
// nothing to a container's first process.
func untilSignal() context.Context {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		stop()
		fmt.Fprintf(os.Stderr, "rankcache: %v again: ended at once\n", <-signals)
		os.Exit(exitSignaled)
	}()
	return ctx
}

// run executes one command line. It returns when the command has ended or ctx
// is done and everything it started has stopped.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.InitDefaultHelpCmd()       // cobra would add both after addKafkaFlags has
	root.InitDefaultCompletionCmd() // looked for the command
	if err := addKafkaFlags(root, args); err != nil {
		return err
	}
	return root.ExecuteContext(ctx)
}

func exitCode(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	}
	return exitFailed
}
