package origin

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// Histories returns for each board a name of what the server that has it has been through: another one after
// a restart, a failover, FLUSHALL and FLUSHDB. It is "" where the server does not tell: some proxies do
// not, and a user may lack +info. Each server is asked once. The error is that one did not answer.
func (a auditor) Histories(ctx context.Context, boards []rankcache.BoardID) (names []string, err error) {
	names = make([]string, len(boards))
	err = a.call(ctx, "history", func(ctx context.Context) error {
		known := make(map[redis.Cmdable]string)
		for i, b := range boards {
			server, err := a.server(ctx, b)
			if err != nil {
				return err
			}
			if _, ok := known[server]; !ok {
				if known[server], err = history(ctx, server); err != nil {
					return err
				}
			}
			names[i] = known[server]
		}
		return nil
	})
	return names, err
}

// history names the history of one server: its master_replid, and how often it was emptied since it started.
func history(ctx context.Context, server redis.Cmdable) (string, error) {
	var replication, commands *redis.StringCmd
	_, err := server.Pipelined(ctx, func(p redis.Pipeliner) error {
		replication, commands = p.Info(ctx, "replication"), p.Info(ctx, "commandstats")
		return nil
	})
	switch {
	case err != nil && refused(err):
		return "", nil
	case err != nil:
		return "", err
	}
	var parts []string
	for line := range strings.Lines(replication.Val() + "\n" + commands.Val()) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch calls, _, _ := strings.Cut(value, ","); key {
		case "master_replid":
			parts = append(parts, value)
		case "cmdstat_flushall", "cmdstat_flushdb":
			parts = append(parts, key+" "+calls)
		}
	}
	return strings.Join(parts, ", "), nil
}
