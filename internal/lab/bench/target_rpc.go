package bench

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/httpserve"
	"rankcache/internal/serve"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/sidecar"
	"rankcache/sidecar/rpc"
	"rankcache/wire"
)

// rpcTarget is the listener for Connect and gRPC, as serve joins it, with one super-hot board.
type rpcTarget struct{ server *rpc.Server }

func newRPCTarget(_ context.Context, o *targetOptions) (target, error) {
	boards := localboard.NewBoards()
	newUpdater(boards.Create(benchBoardID), o.members)
	boards.Open(benchBoardID)
	tiers, err := benchTiers()
	if err != nil {
		return nil, err
	}
	from := origin.New(redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", Protocol: 2}), wire.DefaultNames()) // asked for nothing
	reader, err := sidecar.NewReader(sidecar.Config{Tiers: tiers, Boards: serve.OpenBoards{Boards: boards}, Origin: from}, nil)
	if err != nil {
		return nil, err
	}
	server, err := rpc.New(reader, rpc.Config{}, targetLog(), nil)
	return &rpcTarget{server}, err
}

func targetLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (t *rpcTarget) serve(ctx context.Context, ln net.Listener) error { return t.server.Serve(ctx, ln) }

// bareRPCTarget answers with the bytes that an rpcTarget gave, by the same HTTP server with a
// bare handler.
type bareRPCTarget struct{ replies map[string]*http.Response } // by Content-Type

func newBareRPCTarget(ctx context.Context, o *targetOptions) (target, error) {
	full, err := newRPCTarget(ctx, o)
	if err != nil {
		return nil, err
	}
	t := &bareRPCTarget{make(map[string]*http.Response)}
	for _, p := range rpcProtocols {
		req := httptest.NewRequest(http.MethodPost, "http://localhost"+rpcTop, bytes.NewReader(p.request()))
		p.set(req)
		answer := httptest.NewRecorder()
		full.(*rpcTarget).server.Handler().ServeHTTP(answer, req)
		t.replies[p.contentType] = answer.Result()
		t.replies[p.contentType].Body = io.NopCloser(bytes.NewReader(nil))
		t.replies[p.contentType].Status = answer.Body.String() // the bytes; a Status is not looked at
	}
	return t, nil
}

func (t *bareRPCTarget) serve(ctx context.Context, ln net.Listener) error {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := t.replies[r.Header.Get("Content-Type")]
		if _, err := io.Copy(io.Discard, r.Body); err != nil || reply == nil {
			http.Error(w, "no such reply", http.StatusBadRequest)
			return
		}
		to := w.Header()
		for name, values := range reply.Header {
			to[name] = values
		}
		_, _ = io.WriteString(w, reply.Status)
		for name, values := range reply.Trailer {
			to[http.TrailerPrefix+strings.TrimPrefix(name, http.TrailerPrefix)] = values
		}
	})
	if err := httpserve.Serve(ctx, ln, h, httpserve.Config{HTTP2: true, MaxConns: rpc.DefaultMaxConns}, targetLog()); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
