package bench

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"

	"connectrpc.com/connect"
	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/proto"

	"rankcache/internal/httpserve"
	"rankcache/internal/serve"
	"rankcache/localboard"
	"rankcache/origin"
	v1 "rankcache/proto/rankcache/v1"
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

// bareRPCTarget is the same HTTP server with a handler of connect-go that returns the answer which
// an rpcTarget gave.
type bareRPCTarget struct{ answer *v1.GetTopResponse }

func newBareRPCTarget(ctx context.Context, o *targetOptions) (target, error) {
	full, err := newRPCTarget(ctx, o)
	if err != nil {
		return nil, err
	}
	p := rpcProtocols[0]
	req := httptest.NewRequest(http.MethodPost, "http://localhost"+rpcTop, bytes.NewReader(p.request()))
	req.Header.Set("Content-Type", p.contentType)
	answer := httptest.NewRecorder()
	full.(*rpcTarget).server.Handler().ServeHTTP(answer, req)
	t := &bareRPCTarget{new(v1.GetTopResponse)}
	return t, proto.Unmarshal(answer.Body.Bytes(), t.answer)
}

func (t *bareRPCTarget) serve(ctx context.Context, ln net.Listener) error {
	h := connect.NewUnaryHandlerSimple(rpcTop, func(context.Context, *v1.GetTopRequest) (*v1.GetTopResponse, error) { return t.answer, nil },
		connect.WithCompressMinBytes(1<<30)) // the listener compresses nothing
	if err := httpserve.Serve(ctx, ln, h, httpserve.Config{HTTP2: true, MaxConns: rpc.DefaultMaxConns}, targetLog()); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
