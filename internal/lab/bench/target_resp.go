package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/tidwall/redcon"
	"golang.org/x/sync/errgroup"

	"rankcache/internal/lab/load"
	"rankcache/internal/serve"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/sidecar"
	"rankcache/sidecar/resp"
	"rankcache/wire"
)

// respTarget is the listener for clients of Redis, as serve joins it, with one super-hot
// board.
type respTarget struct{ server *resp.Server }

func newRESPTarget(_ context.Context, o *targetOptions) (target, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	client := redis.NewClient(&redis.Options{Addr: o.redis, Protocol: 2, DisableIdentity: true})
	boards := localboard.NewBoards()
	newUpdater(boards.Create(benchBoardID), o.members)
	boards.Open(benchBoardID)
	tiers, err := benchTiers()
	if err != nil {
		return nil, err
	}
	names := wire.DefaultNames()
	reader, err := sidecar.NewReader(sidecar.Config{Tiers: tiers, Boards: serve.OpenBoards{Boards: boards}, Origin: origin.New(client, names)}, nil)
	if err != nil {
		return nil, err
	}
	server, err := resp.New(reader, resp.Config{Names: names, Dial: dialTCP(o.redis)}, log, prometheus.NewRegistry())
	return &respTarget{server}, err
}

func dialTCP(addr string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	}
}

func (t *respTarget) serve(ctx context.Context, ln net.Listener) error {
	return t.server.Serve(ctx, ln)
}

func (t *respTarget) run(ctx context.Context) error { return t.server.Run(ctx) }

// redconTarget answers each command with the same bytes, by a bare server of the library
// that Go programs take for this.
type redconTarget struct{ reply []byte }

func newRedconTarget(_ context.Context, o *targetOptions) (target, error) {
	reply, err := load.AskRedis(load.Target{Network: "tcp", Addr: o.redis}, respTop50...)
	return &redconTarget{reply}, err
}

func (t *redconTarget) serve(ctx context.Context, ln net.Listener) error {
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	err := redcon.Serve(ln, func(conn redcon.Conn, _ redcon.Command) { conn.WriteRaw(t.reply) }, nil, nil)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// relayTarget copies bytes between each client and a connection to Redis, both ways.
type relayTarget struct {
	dial func(context.Context) (net.Conn, error)
}

func newRelayTarget(_ context.Context, o *targetOptions) (target, error) {
	return &relayTarget{dialTCP(o.redis)}, nil
}

func (t *relayTarget) serve(ctx context.Context, ln net.Listener) error {
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	for {
		client, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		go t.relay(ctx, client)
	}
}

func (t *relayTarget) relay(ctx context.Context, client net.Conn) {
	defer client.Close()
	redis, err := t.dial(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer redis.Close()
	var both errgroup.Group
	for _, way := range [][2]net.Conn{{redis, client}, {client, redis}} {
		both.Go(func() error {
			_, err := copyPlain(way[0], way[1])
			return errors.Join(err, way[0].Close())
		})
	}
	_ = both.Wait() // either has gone
}

// copyPlain copies through memory, as a relay does that looks at the bytes.
func copyPlain(to io.Writer, from io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 16<<10))
}
