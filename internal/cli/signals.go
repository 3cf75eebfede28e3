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

// sameSignal is how long further SIGTERMs are the same request: GNU timeout sends two within milliseconds.
const sameSignal = time.Second

// untilSignal returns a context that the first SIGINT or SIGTERM ends. A later one ends the process by its own hand.
func (p *process) untilSignal() context.Context {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		stop()
		p.endOverdue()
		again := secondSignal(signals, time.Now())
		p.exit(ExitSignaled, fmt.Sprintf("rankcache: %v again: ended at once\n", again))
	}()
	return ctx
}

// secondSignal returns the first signal that is not the same request as the one that came at first.
func secondSignal(signals <-chan os.Signal, first time.Time) os.Signal {
	for s := range signals {
		if time.Since(first) > sameSignal {
			return s
		}
	}
	return nil
}

type hangups chan os.Signal // the SIGHUPs of a long-running command

// catchHangups keeps SIGHUP from ending the process from now on.
func catchHangups() hangups {
	h := make(hangups, 1)
	signal.Notify(h, syscall.SIGHUP)
	return h
}

// reload reads files again at each SIGHUP until ctx is done. Rooms need no signal: they are read again every second.
func (h hangups) reload(ctx context.Context, log *slog.Logger, load func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h:
		}
		log.Info("SIGHUP: files of secrets and certificates are read again")
		load()
	}
}
