package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is for how long after the first SIGTERM or SIGINT others are the
// same request: GNU timeout, for one, sends two within milliseconds.
const sameSignal = time.Second

// untilSignal returns a context that the first SIGINT or SIGTERM ends. A later
// one ends the process at once, by its own hand: the kernel's default would do
// nothing to a container's first process.
func untilSignal() context.Context {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		stop()
		again := secondSignal(signals, time.Now())
		fmt.Fprintf(os.Stderr, "rankcache: %v again: ended at once\n", again)
		os.Exit(ExitSignaled)
	}()
	return ctx
}

// secondSignal returns the first signal that is not the same request as the one
// that came at first.
func secondSignal(signals <-chan os.Signal, first time.Time) os.Signal {
	for s := range signals {
		if time.Since(first) > sameSignal {
			return s
		}
	}
	return nil
}

// hangups are the SIGHUPs of a long-running command.
type hangups chan os.Signal

// catchHangups keeps SIGHUP from ending the process from now on.
func catchHangups() hangups {
	h := make(hangups, 1)
	signal.Notify(h, syscall.SIGHUP)
	return h
}

// reload reads the secrets again at each SIGHUP until ctx is done. Rooms need no
// signal: they are read again every second.
func (h hangups) reload(ctx context.Context, log *slog.Logger, all Secrets) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h:
		}
		log.Info("SIGHUP: secret files are read again")
		if err := all.load(); err != nil {
			log.Error("secrets can't be read again, the last ones stay in force", "err", err)
		}
	}
}
