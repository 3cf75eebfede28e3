package origin

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// ServerID returns the run_id of the Redis process that has the board. It is another
// one after a restart or a failover.
func (o *Origin) ServerID(ctx context.Context, b rankcache.BoardID) (id string, err error) {
	err = o.call(ctx, "server", func(ctx context.Context) error {
		server, err := o.server(ctx, b)
		if err != nil {
			return err
		}
		text, err := server.Info(ctx, "server").Result()
		if err == nil {
			id, err = runID(text)
		}
		return err
	})
	return id, err
}

// server returns the client of the process that has the board.
func (o *Origin) server(ctx context.Context, b rankcache.BoardID) (redis.Cmdable, error) {
	if cluster, ok := o.client.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, o.names.BoardKey(b))
	}
	return o.client, nil
}

func runID(info string) (string, error) {
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(line, "run_id:"); ok {
			return strings.TrimSpace(id), nil
		}
	}
	return "", &badReply{"INFO server", "has no run_id"}
}

// Readopt asks a writer to add up the members of a board whose sum in Redis is wrong,
// and to begin a new run. Nothing happens if the board's run is another one by then.
func (o *Origin) Readopt(ctx context.Context, b rankcache.BoardID, run uint64) error {
	return o.call(ctx, "readopt", func(ctx context.Context) error {
		return o.client.HSet(ctx, o.names.Readopt, string(b), run).Err()
	})
}
