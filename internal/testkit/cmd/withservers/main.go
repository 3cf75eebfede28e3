// Command withservers starts a redis-server, a Kafka broker and a PostgreSQL, in full size also a MariaDB, runs a
// command, such as go test, and ends them:
//
//	withservers go test ./...
//
// The command finds them by RANKCACHE_TEST_REDIS, _KAFKA, _POSTGRES and _MARIADB. A server that one of these names
// already is not started. One that is not installed is left out, which is printed before and after the command, or is
// an error with RANKCACHE_REQUIRE_REAL=1. The exit code is the command's.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// exitUsage and exitStart are what we exit with when the command was not run.
const exitUsage, exitStart = 2, 125

var handled = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: withservers command [argument...]")
		os.Exit(exitUsage)
	}
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withservers:", err)
	}
	os.Exit(code)
}

// run starts the servers, runs argv and ends the servers. The code is argv's, or exitStart when it was not run.
func run(argv []string) (code int, err error) {
	// From here on a signal breaks off the start and then goes to the command; either way the servers are ended.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, handled...)
	ctx, stop := signal.NotifyContext(context.Background(), handled...)
	fleet, err := startFleet(ctx)
	stop()
	defer func() { err = errors.Join(err, fleet.close()) }()
	if err != nil {
		return exitStart, err
	}
	fleet.sayMissing()
	defer fleet.sayMissing()
	code, err = runCommand(argv, fleet.env(), signals)
	if code != 0 {
		fleet.sayOutput()
	}
	return code, err
}

// runCommand runs argv with the signals passed on to it, and returns its exit code, as a shell does for one that a
// signal ended.
func runCommand(argv, env []string, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		return exitStart, fmt.Errorf("run %s: %w", argv[0], err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			cmd.Process.Signal(s)
		case err := <-done:
			return exitCode(cmd.ProcessState), ignoreExit(err)
		}
	}
}

// ignoreExit drops the error that only repeats how the command exited, which the command has printed.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

func exitCode(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}
