// Command sample is an app that asks rankcache beside it for a leaderboard: the
// smallest thing that does it well. It reuses its connections, passes the viewer
// on as me=, and tells when there is no answer. Stopped, it has its answers end
// the connections that callers keep before it closes them.
//
//	GET /?me=1000123            the board as a page
//	GET /board.json?me=1000123  the sidecar's answer as it came
//	GET /healthz                200 while it runs
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sample:", err)
		os.Exit(1)
	}
}

// run serves until ctx is done and callers have been sent elsewhere.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("sample", flag.ContinueOnError)
	listen := flags.String("listen", ":8080", "`address` to listen on")
	board := flags.String("board", "1_2_3", "`id` of the board to show")
	at := flags.String("rankcache", "http://127.0.0.1:8970", "the sidecar's data port, or unix:/path of its socket")
	drain := flags.Duration("drain", 2*time.Second, "how long, after SIGTERM, answers end the connections that callers keep")
	sleep := flags.Duration("sleep", 0, "wait this long and end: a preStop hook for an image without a shell")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *sleep > 0 {
		wait(ctx, *sleep)
		return nil
	}
	a, err := newApp(*at, *board)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	slog.Info("serving", "listen", ln.Addr(), "board", *board, "rankcache", *at)
	return serve(ctx, ln, a.handler(), *drain)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// serve answers on ln until ctx is done and, with Connection: close, for drain after
// it. A caller that keeps a connection could otherwise send its next request at the
// moment at which it is closed.
func serve(ctx context.Context, ln net.Listener, h http.Handler, drain time.Duration) error {
	closing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
	srv := &http.Server{Handler: closing, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	live := context.WithoutCancel(ctx)
	wait(live, drain)
	end, cancel := context.WithTimeout(live, 10*time.Second)
	defer cancel()
	if err := srv.Shutdown(end); err != nil {
		return err
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
