// Command sample is an app that asks rankcache beside it for a leaderboard: the
// smallest thing that does it well. It reuses its connections, passes the viewer
// on as me=, and says so when there is no answer.
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

// run serves until ctx is done and the requests in hand are finished.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("sample", flag.ContinueOnError)
	listen := flags.String("listen", ":8080", "`address` to listen on")
	board := flags.String("board", "1_2_3", "`id` of the board to show")
	at := flags.String("rankcache", "http://127.0.0.1:8970", "the sidecar's data port, or unix:/path of its socket")
	if err := flags.Parse(args); err != nil {
		return err
	}
	a, err := newApp(*at, *board)
	if err != nil {
		return err
	}
	srv := &http.Server{Addr: *listen, Handler: a.handler(), ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- srv.ListenAndServe() }()
	slog.Info("serving", "listen", *listen, "board", *board, "rankcache", *at)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := srv.Shutdown(end); err != nil {
		return err
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
