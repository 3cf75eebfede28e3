package cli

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/spf13/pflag"

	"rankcache/internal/tick"
	"rankcache/sidecar/adminapi"
)

const (
	defaultDrain = 5 * time.Second        // covers the seconds that a Service needs to take a pod out
	unusedFor    = 250 * time.Millisecond // long beside an app's reconnects, and short beside the drain
)

var ErrStopped = errors.New("asked to stop") // the cause with which the parts' context is cancelled

// RegisterDrain registers how long a process goes on answering at its end.
func RegisterDrain(flags *pflag.FlagSet, drain *time.Duration) {
	flags.DurationVar(drain, "drain", defaultDrain, "how long to go on answering after SIGTERM, while not ready")
}

// Connections tells how many connections of callers are open now and how many there have ever been.
type Connections func() (open int, ever uint64)

// Drained returns when ctx is done and callers, which see it in ready, have had the time to go elsewhere; or when live
// is done, because a part has failed. With conns it also returns when no caller is left.
func Drained(ctx, live context.Context, ready *adminapi.Readiness, drain time.Duration, conns Connections, log *slog.Logger) {
	select {
	case <-ctx.Done():
	case <-live.Done():
		return
	}
	ready.Stop(ErrStopped.Error())
	log.Info("stopping", "drain", drain)
	over, cancel := context.WithTimeout(live, drain)
	defer cancel()
	waitUnused(over, conns)
}

// waitUnused returns when there was no connection for unusedFor, short ones included, or ctx is done.
func waitUnused(ctx context.Context, conns Connections) {
	if conns == nil {
		<-ctx.Done()
		return
	}
	_, before := conns()
	since := time.Now()
	for range tick.Every(ctx, unusedFor/10) {
		open, ever := conns()
		if open > 0 || ever != before {
			since, before = time.Now(), ever
		}
		if time.Since(since) >= unusedFor {
			return
		}
	}
}

// Leaving makes every answer of a stopping process end its connection, so that few are left.
func Leaving(ready *adminapi.Readiness, h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if ready.Now().State == adminapi.StateStopping {
			rw.Header().Set("Connection", "close")
		}
		h.ServeHTTP(rw, r)
	})
}
