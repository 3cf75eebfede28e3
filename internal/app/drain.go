package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/spf13/pflag"

	"rankcache/sidecar/adminapi"
)

// defaultDrain covers the seconds that a Service needs to take a pod out.
const defaultDrain = 5 * time.Second

// errStopped is the cause with which the parts are told to end.
var errStopped = errors.New("asked to stop")

func registerDrain(flags *pflag.FlagSet, drain *time.Duration) {
	flags.DurationVar(drain, "drain", defaultDrain, "how long to go on answering, not ready, after SIGTERM")
}

// drained returns when ctx is done and callers, who are told by ready, have had
// the time to go elsewhere; or when live is done, because a part has failed.
func drained(ctx, live context.Context, ready *adminapi.Readiness, drain time.Duration, log *slog.Logger) {
	select {
	case <-ctx.Done():
	case <-live.Done():
		return
	}
	ready.Stop(errStopped.Error())
	log.Info("stopping", "drain", drain)
	select {
	case <-time.After(drain):
	case <-live.Done():
	}
}

// leaving makes every answer of a process that is stopping end its connection,
// so that few are left when the listener is closed.
func leaving(ready *adminapi.Readiness, h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if ready.Now().State == adminapi.StateStopping {
			rw.Header().Set("Connection", "close")
		}
		h.ServeHTTP(rw, r)
	})
}
