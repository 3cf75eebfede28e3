package rebuild

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/lab/servers"
	"rankcache/internal/masters"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/rooms"
	"rankcache/wire"
)

// lossy is a fixture whose Redis is its own, and loses boards.
type lossy struct {
	*fixture
	server *servers.Redis // nil: a cluster
	ledger *ledger.Ledger
	stop   func() // the ledger
}

// newLossy returns a fixture that runs, with a Redis that is never saved by itself.
func newLossy(t *testing.T) *lossy {
	t.Helper()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	dial := func(testing.TB) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true, DialerRetries: 1})
	}
	l := newLossyOn(t, testkit.SQLKinds[0], dial)
	l.server = server
	return l
}

// newLossyOn is the same on a Redis and a kind of database.
func newLossyOn(t *testing.T, kind string, dial func(testing.TB) redis.UniversalClient) *lossy {
	t.Helper()
	l := &lossy{fixture: newIdle(t, kind, dial)}
	l.ledger = l.start(t, func(ctx context.Context, now ledger.Now) { l.mender(t, 1<<40).Run(ctx, now) })
	l.startLedger(t)
	return l
}

// mender returns one that dies after n calls of Redis.
func (l *lossy) mender(t testing.TB, n int64) *Mender {
	paced, mine := l.dial(t), l.dial(t)
	t.Cleanup(func() { paced.Close(); mine.Close() })
	m := &mortal{}
	m.left.Store(n)
	paced.AddHook(m)
	mine.AddHook(m)
	opts := l.opts
	opts.Redis = mine
	return NewMender(MenderOptions{Options: opts, Paced: paced, File: func() *rooms.File { return l.file }})
}

func (l *lossy) startLedger(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := l.ledger.Run(ctx); err != nil {
			t.Error("ledger:", err)
		}
	}()
	l.stop = func() { cancel(); <-ended }
	t.Cleanup(l.stop)
}

// forget has the command topic lose what it has, once everything of it is applied and positions tell so.
func (l *lossy) forget(t *testing.T) {
	t.Helper()
	client, topic := testkit.KafkaClient(t, l.kafka), l.opts.Names.Commands
	part := kmsg.NewDeleteRecordsRequestTopicPartition()
	testkit.Eventually(t, testTimeout, func() error {
		lag, err := testkit.Lag(t.Context(), client, l.name, topic)
		if err == nil {
			part.Offset, err = testkit.Committed(t.Context(), client, l.name, topic, 1)
		}
		if err == nil && lag > 0 {
			err = fmt.Errorf("lag %d", lag)
		}
		return errors.Join(err, masters.Each(t.Context(), l.redis, func(ctx context.Context, tag string, node redis.Cmdable) error {
			if at, _ := wire.ParsePosition(node.HGet(ctx, l.opts.Names.AppliedKey(tag), "0").Val()); at.Next < part.Offset {
				return fmt.Errorf("position %+v, want %d", at, part.Offset)
			}
			return nil
		}))
	})
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{part}}}
	req.TimeoutMillis = 5000
	resp, err := req.RequestWith(t.Context(), client)
	must(t, err)
	must(t, kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode))
}

func (l *lossy) hash() string { return l.opts.Names.AppliedKey(masters.Tag(0)) }

// hashOf returns the key of the positions of a board's master.
func (l *lossy) hashOf(t *testing.T, b rankcache.BoardID) string {
	t.Helper()
	tag, err := masters.Of(t.Context(), l.redis, l.opts.Names.MetaKey(b))
	must(t, err)
	return l.opts.Names.AppliedKey(tag)
}

// awaitWhole waits until Redis was found to be damaged and is whole again.
func (l *lossy) awaitWhole(t *testing.T, life string) {
	t.Helper()
	l.awaitHash(t, l.hash(), life)
}

func (l *lossy) awaitHash(t *testing.T, hash, life string) {
	t.Helper()
	testkit.Eventually(t, 3*testTimeout, func() error {
		fields, err := l.redis.HGetAll(t.Context(), hash).Result()
		if since := fields[wire.PositionsDamaged]; err == nil && (since != "" || fields[wire.PositionsLife] == life || len(fields) < 2) {
			err = fmt.Errorf("positions %v, want another life than %s, and no damage", fields, life)
		}
		return err
	})
}

func (l *lossy) life(t *testing.T) string {
	t.Helper()
	return l.redis.HGet(t.Context(), l.hash(), wire.PositionsLife).Val()
}

// Redis is emptied, restarts empty or from an old file, or loses its positions, and the command topic does not have
// what is missing any more: the ledger brings back each board with its order ids, those that nobody writes, too.
func TestLostBoardsComeBack(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, l *lossy){
		"flushed": func(t *testing.T, l *lossy) { must(t, l.redis.FlushAll(t.Context()).Err()) },
		"restarted empty": func(t *testing.T, l *lossy) {
			must(t, l.server.Kill())
			must(t, l.server.Restart(t.Context()))
		},
		"as it was": func(t *testing.T, l *lossy) {
			must(t, l.server.Kill())
			must(t, l.server.Restart(t.Context()))
		},
		"without positions": func(t *testing.T, l *lossy) { must(t, l.redis.Del(t.Context(), l.hash()).Err()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLossy(t)
			boards := []*fixture{l.of("plain", "written"), l.of("ties", "1"), l.of("trim", "1"), l.of("plain", "quiet"), l.of("hides", "1"), l.of("cars", "1")}
			for i, f := range boards {
				if name == "as it was" && i == 0 {
					f.give(t, "before", "m1", `"op":"incr","delta":5`)
					must(t, l.redis.Save(t.Context()).Err())
				}
				f.fill(t)
			}
			l.forget(t)
			want, before, hidden := make([]map[string]float64, len(boards)), make([]rankcache.State, len(boards)), make([]map[string]string, len(boards))
			for i, f := range boards {
				want[i], before[i], hidden[i] = f.scores(t), f.state(t), f.hidden(t)
			}
			life := l.life(t)
			lose(t, l)
			boards[0].give(t, "after", "m1", `"op":"incr","delta":1`) // waits for the rebuild
			want[0]["m1"]++
			before[0].Seq++
			if name == "as it was" { // it is the same hash
				life = ""
			}
			l.awaitWhole(t, life)
			for i, f := range boards {
				if name == "without positions" {
					before[i].Run-- // nothing of it was lost
				}
				f.wantBack(t, want[i], before[i])
				equal(t, "hidden on "+string(f.board), f.hidden(t), hidden[i])
			}
		})
	}
}

// wantBack checks a board that Redis had lost.
func (f *fixture) wantBack(t *testing.T, want map[string]float64, before rankcache.State) {
	t.Helper()
	equal(t, "scores of "+string(f.board), f.scores(t), want)
	state := f.state(t)
	if state.Run <= before.Run || state.Seq != before.Seq {
		t.Errorf("%s: state %v, was %v: want a later run and the same seq", f.board, state, before)
	}
	f.wantRepeats(t)
	f.wantProved(t)
}

// A board that has a final, or was deleted by hand from a Redis that has lost nothing, does not come back.
func TestNotAllBoardsComeBack(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	deleted, ended, other := l.of("trim", "deleted"), l.of("trim", "ended"), l.of("trim", "other")
	for _, f := range []*fixture{deleted, ended, other} {
		f.give(t, "o1", "m1", `"op":"incr","delta":5`)
		f.settle(t)
	}
	deleted.lose(t)
	deleted.give(t, "o2", "m2", `"op":"incr","delta":1`)
	equal(t, "deleted by hand", deleted.scores(t), map[string]float64{"m2": 1})

	must(t, l.opts.Store.SaveFinal(t.Context(), &ledger.Final{Final: wire.Final{Board: ended.board, Class: "trim", State: ended.state(t)}}))
	life := l.life(t)
	must(t, l.redis.FlushAll(t.Context()).Err())
	l.awaitWhole(t, life)
	equal(t, "other", other.scores(t), map[string]float64{"m1": 5})
	if n := l.redis.Exists(t.Context(), l.opts.Names.BoardKey(ended.board), l.opts.Names.MetaKey(ended.board)).Val(); n != 0 {
		t.Error("a board with a final is there again")
	}
	equal(t, "of the later life", deleted.scores(t), map[string]float64{"m2": 1})
}

// A board that was open in the file from which Redis came back, and has a final since, is made whole, so that it is closed again. So is a shard
// of which Redis has nothing, beside one that is open.
func TestOpenBoardWithFinalComesBack(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	day, first, second := l.of("hides-day", "1"), l.of("split", "1"), l.of("split", "1")
	whole := first.board
	shard := class.ShardOf("m1", 2)
	first.board, second.board = class.ShardID(whole, shard), class.ShardID(whole, 1-shard)
	other := "m2"
	for n := 3; class.ShardOf(other, 2) == shard; n++ {
		other = fmt.Sprint("m", n)
	}
	for _, f := range []*fixture{day, first} {
		f.give(t, "before", "m1", `"op":"incr","delta":130`)
	}
	must(t, l.redis.Save(t.Context()).Err())
	for f, member := range map[*fixture]string{day: "m1", first: "m1", second: other} {
		f.give(t, "since", member, `"op":"incr","delta":572`)
		f.settle(t)
	}
	for board, f := range map[rankcache.BoardID]*fixture{day.board: day, whole: first} {
		must(t, l.opts.Store.SaveFinal(t.Context(), &ledger.Final{Final: wire.Final{Board: board, Class: f.class, State: f.state(t)}}))
	}
	l.forget(t)
	must(t, l.server.Kill())
	must(t, l.server.Restart(t.Context()))
	for f, want := range map[*fixture]map[string]float64{day: {"m1": 702}, first: {"m1": 702}, second: {other: 572}} {
		testkit.Eventually(t, testTimeout, func() error {
			if got := f.scores(t); !maps.Equal(got, want) {
				return fmt.Errorf("%s has %v, want %v", f.board, got, want)
			}
			return nil
		})
	}
	if end := l.redis.ZScore(t.Context(), l.opts.Names.Ends, string(day.board)).Val(); end == 0 {
		t.Error("nothing closes the board again")
	}
}

// A database from an older dump has no final of a board, and Redis has lost the board: the final comes from its topic first, so that the board
// does not come back.
func TestOldDumpAndLostBoards(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	ended, other := l.of("trim", "ended"), l.of("trim", "other")
	for _, f := range []*fixture{ended, other} {
		f.give(t, "o1", "m1", `"op":"incr","delta":5`)
		f.settle(t)
	}
	l.stop()
	final := wire.Final{Board: ended.board, Class: "trim", State: ended.state(t), Members: 1}
	record, err := wire.EncodeFinal(&final)
	must(t, err)
	testkit.CreateTopic(t, l.kafka, l.opts.Names.Finals, 1, nil)
	testkit.Produce(t, l.kafka, &kgo.Record{Topic: l.opts.Names.Finals, Value: record})
	life := l.life(t)
	must(t, l.redis.FlushAll(t.Context()).Err())
	l.startLedger(t)
	l.awaitWhole(t, life)
	equal(t, "other", other.scores(t), map[string]float64{"m1": 5})
	if n := l.redis.Exists(t.Context(), l.opts.Names.BoardKey(ended.board), l.opts.Names.MetaKey(ended.board)).Val(); n != 0 {
		t.Error("a board with a final is there again")
	}
}

// Redis comes back from an old file, and the database from an older dump: what came since, the final too, is in their topics. The board, which is
// open in the file, is made whole and closed again, and keeps its one final.
func TestOldFileAndOldDump(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	day, gone := l.of("hides-day", "1"), l.of("trim", "1")
	for _, f := range []*fixture{day, gone} {
		f.give(t, "dump", "m1", `"op":"incr","delta":100`)
		f.settle(t)
	}
	l.stop() // so that the database stays as its dump
	day.give(t, "file", "m1", `"op":"incr","delta":30`)
	must(t, l.redis.Save(t.Context()).Err())
	for _, f := range []*fixture{day, gone} {
		f.give(t, "since", "m2", `"op":"incr","delta":572`)
	}
	final := wire.Final{Board: day.board, Class: day.class, State: day.state(t), Members: 2}
	for member, score := range day.scores(t) {
		final.Top = append(final.Top, rankcache.Entry{Member: member, Score: score})
	}
	ledger.ByRank(final.Top)
	record, err := wire.EncodeFinal(&final)
	must(t, err)
	testkit.CreateTopic(t, l.kafka, l.opts.Names.Finals, 1, nil)
	testkit.Produce(t, l.kafka, &kgo.Record{Topic: l.opts.Names.Finals, Value: record})
	l.forget(t)
	must(t, l.server.Kill())
	must(t, l.server.Restart(t.Context()))
	l.startLedger(t)
	for f, want := range map[*fixture]map[string]float64{day: {"m1": 130, "m2": 572}, gone: {"m1": 100, "m2": 572}} {
		testkit.Eventually(t, 3*testTimeout, func() error {
			if got := f.scores(t); !maps.Equal(got, want) {
				return fmt.Errorf("%s has %v, want %v", f.board, got, want)
			}
			return nil
		})
		f.wantProved(t)
	}
	if end := l.redis.ZScore(t.Context(), l.opts.Names.Ends, string(day.board)).Val(); end == 0 {
		t.Error("nothing closes the board again")
	}
	made, err := l.opts.Store.FinalOf(t.Context(), day.board, 0, 10)
	if err != nil || made == nil || made.State != final.State || len(made.Top) != 2 {
		t.Errorf("final %+v, %v, want the one of the topic", made, err)
	}
}

// A command of a board that has a final is refused while Redis is damaged, and is no new life of it.
func TestEndedBoardRefusesWhileDamaged(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	f := l.of("trim", "ended")
	f.give(t, "o1", "m1", `"op":"incr","delta":5`)
	f.settle(t)
	must(t, l.opts.Store.SaveFinal(t.Context(), &ledger.Final{Final: wire.Final{Board: f.board, Class: "trim", State: f.state(t)}}))
	l.stop() // so that Redis stays damaged
	must(t, l.redis.FlushAll(t.Context()).Err())
	testkit.Eventually(t, testTimeout, func() error {
		if answer := l.postUntil(t, f, "o2", http.StatusServiceUnavailable); !strings.Contains(answer, "rankcache ledger") {
			return fmt.Errorf("answered %s, want what it waits for", answer)
		}
		return nil
	})
	l.startLedger(t)
	testkit.Eventually(t, testTimeout, func() error {
		status, answer := f.post(f.command("o2", "m2", `"op":"incr","delta":1`))
		if status == http.StatusOK || !strings.Contains(answer, "ended") {
			return fmt.Errorf("%d %s", status, answer)
		}
		return nil
	})
}

// postUntil posts, with little time, until it is answered with a status.
func (l *lossy) postUntil(t *testing.T, f *fixture, id string, want int) (answer string) {
	t.Helper()
	testkit.Eventually(t, testTimeout, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		var status int
		if status, answer = f.postIn(ctx, f.command(id, "m2", `"op":"incr","delta":1`)); status != want {
			return fmt.Errorf("%d %s, want %d", status, answer, want)
		}
		return nil
	})
	return answer
}

// Without a ledger that runs, commands of a board that Redis may have lost wait, those of others are applied. Once one runs
// nothing is lost, and nothing is counted twice.
func TestCommandsWaitForTheLedger(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	f, free := l.of("trim", "1"), l.of("free", "1")
	f.fill(t)
	want := f.scores(t)
	l.forget(t)
	l.stop()
	must(t, l.redis.FlushAll(t.Context()).Err())
	l.postUntil(t, f, "waits", http.StatusServiceUnavailable)
	free.give(t, "o1", "m", `"op":"incr","delta":1`)
	if n := l.redis.Exists(t.Context(), l.opts.Names.MetaKey(f.board)).Val(); n != 0 {
		t.Error("the board has begun a new life")
	}
	l.startLedger(t)
	f.give(t, "waits", "m2", `"op":"incr","delta":1`)
	want["m2"]++
	l.awaitWhole(t, "")
	equal(t, "scores", f.scores(t), want)
	f.wantRepeats(t)
	f.wantProved(t)
}

// Ledgers die at any step of a rebuild, and the next one completes it.
func TestLedgersDieWhileTheyRebuild(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	l.stop()
	f, quiet := l.of("trim", "1"), l.of("plain", "1")
	for n := range testkit.Sized(4, 20) {
		l.startLedger(t)
		for _, one := range []*fixture{f, quiet} {
			one.give(t, fmt.Sprint("o", n), "m1", `"op":"incr","delta":3`)
			one.settle(t)
		}
		l.forget(t)
		l.stop()
		want, life := map[string]float64{"m1": 3 * float64(n+1)}, l.life(t)
		must(t, l.redis.FlushAll(t.Context()).Err())
		l.postUntil(t, f, "waits"+fmt.Sprint(n), http.StatusServiceUnavailable)
		for _, calls := range []int64{int64(4 + 6*n), int64(11 + 10*n)} {
			l.mendOnce(t, calls)
		}
		l.startLedger(t)
		l.awaitWhole(t, life)
		equal(t, "quiet", quiet.scores(t), want)
		f.give(t, "waits"+fmt.Sprint(n), "m2", `"op":"incr","delta":1`)
		l.stop()
		equal(t, "written", f.scores(t), map[string]float64{"m1": 3 * float64(n+1), "m2": float64(n + 1)})
	}
	l.startLedger(t)
	for _, one := range []*fixture{f, quiet} {
		one.wantRepeats(t)
		one.wantProved(t)
	}
}

// mendOnce has a mender work until it dies after so many calls of Redis.
func (l *lossy) mendOnce(t *testing.T, calls int64) {
	t.Helper()
	m := l.mender(t, calls)
	found, err := m.find(t.Context())
	if err == nil && len(found) > 0 {
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		defer cancel()
		err = (&mending{Mender: m, damaged: found[0]}).run(ctx, ledger.Now{Leads: func() bool { return true }, Reached: func(context.Context) error { return nil }})
	}
	if err != nil && !errors.Is(err, errDead) && !errors.Is(err, errOver) && !errors.Is(err, errNoPositions) && !strings.Contains(err.Error(), errDead.Error()) {
		t.Error("mend:", err)
	}
}

// One of three masters loses all: its boards come back, and those of the others stay as they are.
func TestLostMasterOfACluster(t *testing.T) {
	t.Parallel()
	testkit.FullOnly(t, "a cluster of its own")
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			c := testkit.StartRedisCluster(t, servers.ClusterOptions{})
			l := newLossyOn(t, kind, func(testing.TB) redis.UniversalClient {
				return redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true})
			})
			var boards []*fixture
			for i := range 12 {
				f := l.of([]string{"plain", "ties", "trim"}[i%3], fmt.Sprint(i))
				f.fill(t)
				boards = append(boards, f)
			}
			l.forget(t)
			want, before := make([]map[string]float64, len(boards)), make([]rankcache.State, len(boards))
			for i, f := range boards {
				want[i], before[i] = f.scores(t), f.state(t)
			}
			hash := l.hashOf(t, boards[0].board)
			life := l.redis.HGet(t.Context(), hash, wire.PositionsLife).Val()
			m, err := c.Master(t.Context(), hash)
			must(t, err)
			must(t, m.Do(t.Context(), "FLUSHALL"))
			boards[0].give(t, "after", "m1", `"op":"incr","delta":1`) // waits for the rebuild
			want[0]["m1"]++
			before[0].Seq++
			l.awaitHash(t, hash, life)
			lost := 0
			for i, f := range boards {
				if l.hashOf(t, f.board) == hash {
					lost++
					f.wantBack(t, want[i], before[i])
					continue
				}
				equal(t, "scores of "+string(f.board), f.scores(t), want[i])
				equal(t, "state", f.state(t), before[i])
			}
			t.Logf("%d of %d boards were lost", lost, len(boards))
		})
	}
}

// Two menders at once do no harm.
func TestTwoMenders(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	boards := make(map[*fixture]map[string]float64)
	for i := range 12 {
		f := l.of("trim", fmt.Sprint(i))
		f.give(t, "o1", "m1", `"op":"incr","delta":5`)
		f.settle(t)
		boards[f] = f.scores(t)
	}
	l.forget(t)
	life := l.life(t)
	must(t, l.redis.FlushAll(t.Context()).Err())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.mender(t, 1<<40).Run(ctx, ledger.Now{Leads: func() bool { return true }, Reached: func(context.Context) error { return nil }})
	}()
	for f := range maps.Keys(boards) {
		f.give(t, "o2", "m2", `"op":"incr","delta":1`)
	}
	l.awaitWhole(t, life)
	cancel()
	<-ended
	for f, want := range boards {
		want["m2"]++
		equal(t, string(f.board), f.scores(t), want)
		f.wantRepeats(t)
		f.wantProved(t)
	}
}

// A change that was never published, as its writer died, is applied again from the command topic, once; as are those behind it,
// whose scores had it.
func TestUnpublishedChangeCountsOnce(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	for _, class := range []string{"free-ledger", "trim"} {
		f := l.of(class, "1")
		for i := range 12 {
			f.give(t, fmt.Sprint("o", i), fmt.Sprint("m", i%10), `"op":"incr","delta":3`)
		}
		f.settle(t)
		_, err := testkit.SQL(t, l.database).ExecContext(t.Context(), "DELETE FROM rank_log WHERE order_id = 'o1' AND board = '"+string(f.board)+"'")
		must(t, err)
		want, life := f.scores(t), l.life(t)
		testkit.Eventually(t, testTimeout, func() error { // it is noted that there were positions
			if n := l.redis.HLen(t.Context(), l.hash()).Val(); n < 2 {
				return errors.New("no position")
			}
			return nil
		})
		must(t, l.redis.FlushAll(t.Context()).Err())
		l.awaitWhole(t, life)
		for i := range 12 {
			f.give(t, fmt.Sprint("o", i), fmt.Sprint("m", i%10), `"op":"incr","delta":3`)
		}
		equal(t, "scores", f.scores(t), want)
		f.settle(t)
	}
}
