package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
)

// redisAway reports which reads are due an answer while Redis is away: those that a
// copy in memory can answer.
func redisAway(q *Question) bool {
	switch q.Tier {
	case "local":
		return true
	case "hot": // its page, which holds 100 rows
		return q.Kind == KindTop
	}
	return false
}

// localOnly is due when hot pages are too old as well.
func localOnly(q *Question) bool { return q.Tier == "local" }

func nothing(*Question) bool { return false }

func redisFaults() []fault {
	return []fault{{
		name: "Redis is down at the start", due: nothing,
		start: func(w *env) { w.startWithoutRedis() },
		heal:  func(w *env) { w.must(w.redis.Restart(context.Background())) },
	}, {
		name: "Redis is down at the start, boards are kept in files", due: localOnly, note: "--snapshot-dir",
		prepare: func(w *env) { w.args = append(w.args, "--snapshot-dir", w.TempDir(), "--snapshot-every", "1s") },
		inject: func(w *env) {
			w.waitReads(steadyReads) // until there are files
			w.must(w.redis.Kill())
			w.restartSidecar()
		},
		heal: func(w *env) { w.must(w.redis.Restart(context.Background())) },
	}, {
		name: "Redis dies (SIGKILL)", quick: true, due: redisAway,
		inject: func(w *env) { w.must(w.redis.Kill()) },
		heal:   func(w *env) { w.must(w.redis.Restart(context.Background())) },
	}, {
		name: "Redis is away for longer than hot pages may be served", due: localOnly, args: []string{"--hot-stale", "2s"},
		inject: func(w *env) { w.readsRedis.Cut(); w.writesRedis.Cut() },
		hold:   func(w *env) { w.waitSeen("hot", "503") },
		heal:   func(w *env) { w.must(errors.Join(w.readsRedis.Restore(), w.writesRedis.Restore())) },
	}, {
		name: "Redis hangs (SIGSTOP)", due: redisAway,
		inject: func(w *env) { w.must(w.redis.Pause()) },
		heal:   func(w *env) { w.must(w.redis.Resume()) },
	}, {
		name:   "Redis is slow (250 ms more)", // a new connection takes three turns, of 900 ms in all
		inject: func(w *env) { w.readsRedis.Delay(125 * time.Millisecond) },
		heal:   func(w *env) { w.must(w.readsRedis.Restore()) },
	}, {
		name: "the sidecar alone can't reach Redis", due: redisAway, note: "writes go on",
		inject: func(w *env) { w.readsRedis.Cut() },
		heal:   func(w *env) { w.must(w.readsRedis.Restore()) },
	}, {
		name: "connections to Redis hang, new ones too", due: redisAway, note: "writes go on",
		inject: func(w *env) { w.readsRedis.Stall() },
		heal:   func(w *env) { w.must(w.readsRedis.Restore()) },
	}, {
		name: "Redis restarts empty", losesWrites: true, due: redisAway,
		inject: func(w *env) { w.emptyRedis() },
	}, {
		name: "Redis fails over and loses a few writes", losesWrites: true, due: redisAway,
		inject: func(w *env) { w.failOver(5) },
	}, {
		name: "Redis fails over and loses many writes", losesWrites: true, due: redisAway,
		inject: func(w *env) { w.failOver(400) },
	}}
}

// must fails the row if something that causes or heals a fault did not work.
func (w *env) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// startWithoutRedis starts sidecar and writer on boards that were filled before
// Redis went away.
func (w *env) startWithoutRedis() {
	w.startWriter()
	w.writes.Fill(w.Context(), 1)
	w.must(w.redis.Stop())
	w.startSidecar()
	w.startLoad(2)
}

// emptyRedis stops Redis and starts it with nothing in it.
func (w *env) emptyRedis() {
	w.Helper()
	w.writes.Pause()
	defer w.writes.Resume()
	w.must(w.redis.Stop())
	w.must(os.RemoveAll(filepath.Join(w.redis.Dir(), "appendonlydir")))
	for _, b := range w.boards {
		w.oracle.Rewind(b.ID, 0)
	}
	w.must(w.redis.Restart(context.Background()))
}

// newReplica starts a replica of the Redis in use, whose link can be cut.
func (w *env) newReplica() (replica *servers.Redis, link *Proxy) {
	w.Helper()
	replica, link = w.newRedis(), newProxy(w, w.redis.Addr())
	host, port, err := net.SplitHostPort(link.Addr())
	w.must(err)
	w.must(replica.Do(w.Context(), "replicaof", host, port))
	return replica, link
}

// promote kills the Redis in use and puts a replica in its place.
func (w *env) promote(replica *servers.Redis) {
	w.Helper()
	w.must(w.redis.Kill())
	w.must(replica.Do(w.Context(), "replicaof", "no", "one"))
	w.redis = replica
	w.readsRedis.Redirect(replica.Addr())
	w.writesRedis.Redirect(replica.Addr())
}

// failOver puts a replica in Redis's place that lacks the last writes of each
// board.
func (w *env) failOver(lost uint64) {
	w.Helper()
	replica, link := w.newReplica()
	old, next := w.client(), replica.Client()
	w.Cleanup(func() { next.Close() })
	w.eventually(func() error { return caughtUp(w.Context(), old, next, w.boards) })
	link.Cut()
	local := w.board("local").ID
	from := w.oracle.Reached(local)
	w.eventually(func() error {
		if at := w.oracle.Reached(local); at < from+lost {
			return fmt.Errorf("%d of %d writes to be lost", at-from, lost)
		}
		return nil
	})
	w.writes.Pause()
	defer w.writes.Resume()
	w.losing()
	w.promote(replica)
	w.rewind(next)
}

// losing tells the oracle that the boards are about to fall back: answers may come from the
// new master before [env.rewind] knows how far.
func (w *env) losing() {
	for _, b := range w.boards {
		w.oracle.Losing(b.ID)
	}
}

// rewind tells the oracle that the boards fell back to what the new master has.
func (w *env) rewind(next *redis.Client) {
	w.Helper()
	for _, b := range w.boards {
		seq := w.seqIn(next, b.ID)
		w.Logf("%s falls back from %d to %d", b.ID, w.oracle.Reached(b.ID), seq)
		w.oracle.Rewind(b.ID, seq)
	}
}

// caughtUp reports whether a replica has every board's count of some moment.
func caughtUp(ctx context.Context, master redis.UniversalClient, replica *redis.Client, boards []Board) error {
	for _, b := range boards {
		if _, err := seqOf(ctx, replica, b.ID); err != nil {
			return err
		}
	}
	return master.Ping(ctx).Err()
}
