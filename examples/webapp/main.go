// Command webapp shows boards that move in browsers. It is a gateway: it holds one stream of
// each board to the sidecar, and fans out to the viewers.
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"rankcache/examples/live/go/live"
)

// policy lets the page use the files of this app alone.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed page
var embedded embed.FS

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "`address` for browsers")
	sidecar := flag.String("sidecar", "127.0.0.1:8975", "`address` of the sidecar's --rpc")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: webapp [flags] BOARD...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *sidecar, flag.Args()); err != nil {
		slog.Error("webapp", "err", err)
		os.Exit(1)
	}
}

// run serves the boards until ctx ends.
func run(ctx context.Context, listen, sidecar string, names []string) error {
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	boards := make(map[string]*board)
	var followers sync.WaitGroup
	for _, name := range names {
		b := newBoard()
		boards[name] = b
		follower := live.Follower{URL: fmt.Sprintf("http://%s/v1/boards/%s/live?limit=20", sidecar, url.PathEscape(name)), Changed: b.changed}
		followers.Go(func() { follower.Run(ctx) })
	}
	server := &http.Server{
		Handler:           handler(boards, names[0]),
		ReadHeaderTimeout: 5 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // so that the viewers' streams end with the app
	}
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.Background()) })
	slog.Info("serving", "url", "http://"+ln.Addr().String()+"/")
	err = server.Serve(ln)
	followers.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// handler serves the page of each board at /b/{board}, its stream, and the page's files.
func handler(boards map[string]*board, first string) http.Handler {
	page, err := fs.Sub(embedded, "page")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", http.RedirectHandler("/b/"+url.PathEscape(first), http.StatusFound))
	mux.Handle("GET /files/", http.StripPrefix("/files/", http.FileServerFS(page)))
	mux.HandleFunc("GET /b/{board}", func(w http.ResponseWriter, r *http.Request) {
		if boards[r.PathValue("board")] == nil {
			http.NotFound(w, r)
			return
		}
		http.ServeFileFS(w, r, page, "board.html")
	})
	mux.HandleFunc("GET /b/{board}/live", func(w http.ResponseWriter, r *http.Request) {
		if b := boards[r.PathValue("board")]; b != nil {
			b.serve(w, r)
			return
		}
		http.NotFound(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-cache")
		mux.ServeHTTP(w, r)
	})
}
