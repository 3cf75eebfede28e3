package cli

import (
	"fmt"
	"net/http"
	"os"

	"rankcache/internal/httpserve"
	"rankcache/internal/roomsync"
	"rankcache/sidecar/adminapi"
)

// HostName returns the host's name, which in Kubernetes is the pod's; "" if it has none.
func HostName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// ProcessName returns host and process id, which name a process among others.
func ProcessName() string { return fmt.Sprintf("%s-%d", HostName(), os.Getpid()) }

// RequireToken is [httpserve.RequireToken] with a token that may change.
func RequireToken(what string, token *Secret, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpserve.RequireToken(what, token.Get(), next).ServeHTTP(w, r)
	})
}

// Knowing refuses changes until the classes set at run time are known: their boards would seem to have none.
func Knowing(f *roomsync.Follower, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.SharedRead() {
			WriteProblem(w, roomsync.CodeUnavailable, "", "the writer has not read from Redis yet what is set at run time: try again")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// WriteProblem answers errors of handlers that know nothing of the listener.
func WriteProblem(w http.ResponseWriter, code, argument, detail string) {
	adminapi.WriteProblem(w, code, argument, detail)
}
