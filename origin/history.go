package origin

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// historyEvery is how long the history of a server is kept for those that need not know it as it is now.
const historyEvery = 10 * time.Second

// toldHistory is what a server has told, and when it was asked.
type toldHistory struct {
	name string
	at   time.Time
}

// histories has what the servers have told last.
type histories struct {
	mu   sync.Mutex // nothing is called with it held
	told map[redis.Cmdable]toldHistory
}

// Histories returns for each board a name of what its server has been through: another one after a restart, a failover,
// FLUSHALL and FLUSHDB; "" where the server or its ACL (+info) does not tell. With now each is asked, else answers of
// the last 10 s will do. The error is that one did not answer.
func (a auditor) Histories(ctx context.Context, boards []rankcache.BoardID, now bool) (names []string, err error) {
	oldest := time.Now()
	if !now {
		oldest = oldest.Add(-historyEvery)
	}
	names = make([]string, len(boards))
	servers := make([]redis.Cmdable, len(boards))
	for i, b := range boards {
		if servers[i], err = a.server(ctx, b); err != nil {
			return names, explain(ctx, "history", err)
		}
	}
	for i, server := range servers {
		if names[i], err = a.historyOf(ctx, server, oldest); err != nil {
			return names, err
		}
	}
	return names, nil
}

// historyOf returns the history of a server that was told since a time, or is asked for now.
func (a auditor) historyOf(ctx context.Context, server redis.Cmdable, since time.Time) (name string, err error) {
	h := &a.histories
	h.mu.Lock()
	told, ok := h.told[server]
	h.mu.Unlock()
	if ok && !told.at.Before(since) {
		return told.name, nil
	}
	told.at = time.Now()
	if err := a.call(ctx, "history", func(ctx context.Context) error {
		told.name, err = history(ctx, server)
		return err
	}); err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.told, func(_ redis.Cmdable, old toldHistory) bool { return time.Since(old.at) > historyEvery })
	if h.told == nil {
		h.told = make(map[redis.Cmdable]toldHistory)
	}
	h.told[server] = told
	return told.name, nil
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
			if calls != "calls=0" { // else Redis has only refused some
				parts = append(parts, key+" "+calls)
			}
		}
	}
	return strings.Join(parts, ", "), nil
}
