package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/origin"
	"rankcache/rooms"
	"rankcache/wire"
	"rankcache/writer"
)

// logged is a Redis of its own whose log a real writer keeps, and no Kafka.
type logged struct {
	*env
	server *servers.Redis
	writer *writer.Writer
	orders int
}

func newLogged(t *testing.T) *logged {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	l := newLoggedOn(t, redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true}))
	l.server = server
	return l
}

func newLoggedOn(t *testing.T, client *redis.Client) *logged {
	t.Cleanup(func() { client.Close() })
	l := &logged{env: &env{t: t, redis: client, names: wire.DefaultNames()}}
	var err error
	l.writer, err = writer.New(writer.Options{Redis: client, Names: l.names, Tiers: noTiers{}, PublishAll: true, LogSize: 64 << 20, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	l.check(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.writer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		l.check(<-done)
	})
	return l
}

type noTiers struct{}

func (noTiers) File() *rooms.File                         { return &rooms.File{} }
func (noTiers) Boards(rooms.Mode) []rankcache.BoardID     { return nil }
func (noTiers) Mode(rankcache.BoardID, string) rooms.Mode { return rooms.Mode(0) }

// write has the writer make n random changes of a board, in one call.
func (l *logged) write(board rankcache.BoardID, n int) {
	l.t.Helper()
	var commands []string
	for range n {
		l.orders++
		member, change := rand.IntN(50), `"op":"incr","delta":`+fmt.Sprint(rand.IntN(100))
		if rand.IntN(10) == 0 {
			change = `"op":"delete"`
		}
		commands = append(commands, fmt.Sprintf(`{"order":"%s-%d","board":%q,"member":"m%d",%s}`, board, l.orders, board, member, change))
	}
	body := []byte(`{"commands":[` + strings.Join(commands, ",") + `]}`)
	testkit.Eventually(l.t, timeout, func() error {
		answer, problem, ok := l.writer.PostBatch(l.t.Context(), body)
		if !ok {
			return fmt.Errorf("%+v", problem)
		}
		var got struct {
			Results []struct{ Problem *struct{ Detail string } }
		}
		if err := json.Unmarshal(answer, &got); err != nil {
			return err
		}
		for _, r := range got.Results {
			if r.Problem != nil {
				return fmt.Errorf("%s", r.Problem.Detail)
			}
		}
		return nil
	})
}

// follow starts a Runner of boards that reads the log.
func (l *logged) follow(boards []rankcache.BoardID, opts ...option) *sidecar {
	l.t.Helper()
	return l.start(boards, append([]option{func(s *setup) {
		log, err := s.origin.(redisOrigin).Log()
		l.check(err)
		s.RedisLog = log
		s.Log = func(rankcache.BoardID) rooms.Log {
			return rooms.Log{Topic: wire.LogKey, Shared: true, First: time.Now()}
		}
	}}, opts...)...)
}

func (l *logged) board() rankcache.BoardID { return rankcache.BoardID(testkit.Name(l.t)) }

// followsLog checks that a board takes its changes from the log: it is not loaded again.
func (s *sidecar) followsLog(l *logged, board rankcache.BoardID) {
	l.t.Helper()
	s.waitOpen(board)
	loads := s.counter("rankcache_replay_snapshots_total")
	for range 5 {
		l.write(board, 20)
		s.waitOpen(board)
	}
	if now := s.counter("rankcache_replay_snapshots_total"); now != loads {
		l.t.Errorf("%v boards were loaded, %v before", now, loads)
	}
}

// Boards are whole by the log in Redis alone: one that is loaded once, one that has no change yet, one that is named
// later; and what the log has of others is passed over.
func TestLogInRedis(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	first, empty, late, other := l.board(), l.board(), l.board(), l.board()
	l.write(first, 100)
	s := l.follow([]rankcache.BoardID{first, empty})
	s.waitReady()
	s.followsLog(l, first)
	s.followsLog(l, empty)
	l.write(late, 30)
	l.write(other, 30)
	s.Follow([]rankcache.BoardID{first, empty, late})
	s.followsLog(l, late)
	for range 100 { // many boards' entries between each other
		l.write(first, 7)
		l.write(other, 3)
		l.write(late, 5)
	}
	s.waitOpen(first)
	s.waitOpen(late)
	if n, refills := s.counter("rankcache_replay_snapshots_total"), s.counter("rankcache_replay_refills_total"); n != 2 || refills != 0 {
		t.Errorf("%v boards were loaded from Redis, want the two that had changes before; %v filled again", n, refills)
	}
	if s.counter("rankcache_replay_skipped_records_total", "not-followed") == 0 || s.status(first).Proof.Proved.Seq == 0 {
		t.Error("nothing of others has come, or nothing was proved")
	}
}

// After a loss of the log, with the boards or without, boards are equal to Redis again, and follow its log.
func TestLogInRedisIsLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*logged, rankcache.BoardID){
		"FLUSHALL": func(l *logged, _ rankcache.BoardID) { l.check(l.redis.FlushAll(l.t.Context()).Err()) },
		"DEL":      func(l *logged, _ rankcache.BoardID) { l.check(l.redis.Del(l.t.Context(), wire.LogKey).Err()) },
		"older ids, as of a clock that went back": func(l *logged, _ rankcache.BoardID) {
			last := l.redis.XRevRangeN(l.t.Context(), wire.LogKey, "+", "-", 1).Val()[0]
			l.check(l.redis.Del(l.t.Context(), wire.LogKey).Err())
			l.check(l.redis.XAdd(l.t.Context(), &redis.XAddArgs{Stream: wire.LogKey, ID: "99-1", Values: last.Values}).Err())
		},
		"cut": func(l *logged, b rankcache.BoardID) {
			l.write(b, 10)
			l.check(l.redis.XTrimMaxLen(l.t.Context(), wire.LogKey, 0).Err())
			l.write(b, 10)
		},
		"killed and empty": func(l *logged, _ rankcache.BoardID) {
			l.check(l.server.Kill())
			l.check(l.server.Restart(l.t.Context()))
		},
		"killed, with an older dump": func(l *logged, b rankcache.BoardID) {
			l.check(l.redis.Save(l.t.Context()).Err())
			l.write(b, 30)
			l.check(l.server.Kill())
			l.check(l.server.Restart(l.t.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLogged(t)
			board, later := l.board(), l.board()
			l.write(board, 100)
			s := l.follow([]rankcache.BoardID{board})
			s.followsLog(l, board)
			lose(l, board)
			for range 3 {
				l.write(board, 20)
			}
			l.write(later, 5)
			s.waitOpen(board)
			s.followsLog(l, board)
			s.Follow([]rankcache.BoardID{board, later})
			s.followsLog(l, later)
		})
	}
}

// Where the key of the log has something else, the changes stand and Redis is told from an older copy; once the key is
// free, boards are equal again.
func TestLogInRedisIsATextInstead(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	board := l.board()
	l.write(board, 100)
	s := l.follow([]rankcache.BoardID{board})
	s.followsLog(l, board)
	l.check(l.redis.Set(t.Context(), wire.LogKey, "text", 0).Err())
	l.write(board, 10)
	testkit.Eventually(t, timeout, func() error {
		if s.counter("rankcache_replay_redis_errors_total") == 0 {
			return fmt.Errorf("nothing was found")
		}
		return nil
	})
	if err := s.equal(board); err == nil {
		t.Error("the changes have come")
	}
	testkit.Eventually(t, timeout, func() error { // Redis is asked each second
		if st := s.status(board); st.State == rankcache.StateOpen && st.Have >= st.Want {
			return fmt.Errorf("it counts as current: %+v", st)
		}
		return nil
	})
	l.check(l.redis.Del(t.Context(), wire.LogKey).Err())
	s.waitOpen(board)
	s.followsLog(l, board)
}

// A hundred thousand changes by several writers' calls at a time leave both equal.
func TestLogInRedisOfManyChanges(t *testing.T) {
	t.Parallel()
	testkit.FullOnly(t, "makes 100,000 changes")
	l := newLogged(t)
	boards := []rankcache.BoardID{l.board(), l.board(), l.board(), l.board()}
	s := l.follow(boards)
	for range 250 {
		for _, b := range boards {
			l.write(b, 100)
		}
	}
	for _, b := range boards {
		s.waitOpen(b)
	}
	if refills := s.counter("rankcache_replay_refills_total"); refills != 0 {
		t.Errorf("%v boards were filled again", refills)
	}
}

// After a failover in which the new master lacks the last changes boards are equal to it, and follow its log.
func TestLogInRedisFailsOver(t *testing.T) {
	t.Parallel()
	testkit.FullOnly(t, "starts Sentinels and kills a master")
	sentinel := testkit.StartSentinel(t, servers.SentinelOptions{Replicas: 1, DownAfter: 2 * time.Second})
	addrs := sentinel.Addrs()
	client, err := origin.Dial(origin.Options{Mode: origin.ModeSentinel, URL: "redis://" + addrs[0] + "?master_name=" + servers.SentinelMaster + "&addr=" + strings.Join(addrs[1:], "&addr=")})
	if err != nil {
		t.Fatal(err)
	}
	l := newLoggedOn(t, client.(*redis.Client))
	board := l.board()
	l.write(board, 100)
	s := l.follow([]rankcache.BoardID{board})
	s.followsLog(l, board)
	old, err := sentinel.Master(t.Context())
	l.check(err)
	l.check(old.Replicated(t.Context()))
	l.check(sentinel.CutReplicas(t.Context(), old))
	l.write(board, 20)
	s.waitOpen(board)
	l.check(old.Kill())
	testkit.Eventually(t, timeout, func() error { _, err := sentinel.Master(t.Context()); return err })
	l.write(board, 20)
	s.waitOpen(board)
	s.followsLog(l, board)
}
