package rebuild

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/origin"
	"rankcache/rooms"
	"rankcache/wire"
	"rankcache/writer"
)

// unledgered are classes whose boards are in no ledger.
const unledgered = `classes:
- {name: plain, board: "NAME-plain:{zone}", period: none}
- {name: ties, board: "NAME-ties:{zone}", period: none, ties: first, score: integer}
- {name: asc, board: "NAME-asc:{zone}", period: none, order: asc}
- {name: trim, board: "NAME-trim:{zone}", period: none, trim: 8, ops: [incr]}
- {name: day, board: "NAME-day:{zone}:{period}", period: day, grace: 1h, keep: 24h}
`

// newLogged returns a fixture with a writer that publishes, and without a database.
func newLogged(t testing.TB, dial func(testing.TB) redis.UniversalClient) *fixture {
	t.Helper()
	name := strings.NewReplacer("_", "-", ":", "-").Replace(testkit.Name(t))
	f := &fixture{redis: dial(t), dial: dial, name: name, at: time.Now().UnixMilli(), kafka: testkit.Kfake(t).Addr()}
	t.Cleanup(func() { f.redis.Close() })
	var err error
	f.file, err = rooms.Parse([]byte(strings.ReplaceAll(unledgered, "NAME", name)))
	must(t, err)
	names, kafka := wire.DefaultNames(), map[string]string{"bootstrap.servers": f.kafka}
	names.Commands, names.Refused, names.Ledger = "c-"+name, "r-"+name, "l-"+name
	log := slog.New(slog.NewTextHandler(testLog{t}, nil))
	f.Rebuilder = New(Options{Redis: f.redis, Names: names, Origin: origin.New(f.redis, names), Rules: func(b rankcache.BoardID) Rules {
		return RulesOf(f.file, b, Defaults{BoardLife: time.Hour, OrderLife: time.Hour, Buckets: 4})
	}, Updates: &Updates{Kafka: kafka, Names: names, File: f.file}, Wait: 2 * time.Second, Log: log})
	w, err := writer.New(writer.Options{Redis: f.redis, Names: names, Tiers: tiers{f.file}, Kafka: kafka, Group: name, PublishAll: true, BoardLife: 24 * time.Hour,
		Topics: writer.Topics{CommandPartitions: 1}, Log: log})
	must(t, err)
	f.handler = w.Handler()
	run(t, w.Run)
	return f
}

// logged returns the fixture for a board of a class.
func (f *fixture) logged(t testing.TB, class, zone string) *fixture {
	t.Helper()
	own := *f
	b, err := f.file.Class(class).At(map[string]string{"zone": zone}, time.Now())
	must(t, err)
	own.class, own.board, own.orders = class, b.ID, nil
	return &own
}

// fillLogged makes a board with changes of all kinds.
func (f *fixture) fillLogged(t testing.TB) {
	t.Helper()
	for i := range 30 {
		f.give(t, fmt.Sprint("incr-", i), fmt.Sprint("m", i%12), fmt.Sprintf(`"op":"incr","delta":%d`, i+1))
	}
	if f.class != "trim" {
		f.give(t, "set", "m3", `"op":"set","score":7`)
		f.give(t, "delete", "m4", `"op":"delete"`)
		f.give(t, "later", "m4", `"op":"incr","delta":2`)
		f.give(t, "gone", "m5", `"op":"delete"`)
	}
}

// TestRebuildFromLog: boards without a ledger get what the topic of their updates has, with their order ids.
func TestRebuildFromLog(t *testing.T) {
	t.Parallel()
	f := newLogged(t, single)
	for _, class := range []string{"plain", "ties", "asc", "trim", "day"} {
		t.Run(class, func(t *testing.T) { fromLog(t, f.logged(t, class, "7")) })
	}
	t.Run("its beginning is gone", func(t *testing.T) { fromCutLog(t, f.logged(t, "plain", "cut")) })
	t.Run("it has begun again", func(t *testing.T) { fromTwoLives(t, f.logged(t, "plain", "two")) })
	t.Run("a life that is not in the topic", func(t *testing.T) { notPublished(t, f.logged(t, "plain", "own")) })
	t.Run("writers wait", func(t *testing.T) { writersWaitForLog(t, f.logged(t, "plain", "wait")) })
	t.Run("it hides a member", func(t *testing.T) {
		f := f.logged(t, "plain", "hides")
		f.give(t, "o1", "m1", `"op":"incr","delta":3`)
		f.give(t, "hide/1/m1", "m1", `"op":"hide","reason":"bot"`)
		if _, err := f.Rebuild(t.Context(), f.board); err == nil || !strings.Contains(err.Error(), "hides members") {
			t.Error(err)
		}
	})
	t.Run("boards of a class", func(t *testing.T) {
		for class, want := range map[string][]rankcache.BoardID{"asc": {f.logged(t, "asc", "7").board}, "day": {f.logged(t, "day", "7").board}, "none": nil} {
			boards, err := f.opts.Updates.BoardsOf(t.Context(), class)
			must(t, err)
			equal(t, "boards of "+class, boards, want)
		}
	})
}

func TestRebuildFromLogOnACluster(t *testing.T) {
	t.Parallel()
	f := newLogged(t, clustered)
	for _, zone := range []string{"1", "2", "3"} {
		t.Run(zone, func(t *testing.T) { fromLog(t, f.logged(t, "plain", zone)) })
	}
}

func fromLog(t *testing.T, f *fixture) {
	f.fillLogged(t)
	want, before := f.scores(t), f.state(t)
	c, err := f.Compare(t.Context(), f.board)
	must(t, err)
	equal(t, "compared", []any{c.Differ, c.Refused, c.Ledger.Seq, c.LedgerMembers}, []any{0, error(nil), before.Seq, len(want)})
	must(t, f.redis.ZAdd(t.Context(), f.opts.Names.BoardKey(f.board), redis.Z{Member: "m1", Score: 1e6}, redis.Z{Member: "stranger", Score: 5}).Err())
	c, err = f.Compare(t.Context(), f.board)
	must(t, err)
	equal(t, "compared after a change by hand", c.Differ, 2)
	_, err = f.Rebuild(t.Context(), f.board)
	must(t, err)
	f.wantRebuilt(t, want, before)

	before = f.state(t)
	must(t, f.redis.Del(t.Context(), f.keys(t)...).Err())
	done, err := f.Rebuild(t.Context(), f.board)
	must(t, err)
	equal(t, "members, orders", []any{done.Members, done.Orders}, []any{len(want), len(f.orders)})
	f.wantRebuilt(t, want, before)
	f.give(t, "next", "m1", `"op":"incr","delta":3`)
	if got := f.state(t).Seq; got != before.Seq+1 {
		t.Errorf("the next change has seq %d, want %d", got, before.Seq+1)
	}
	must(t, f.redis.Del(t.Context(), f.keys(t)...).Err())
	want = f.scoresAfter(t) // the runs of the rebuilds have no changes but this one
	f.wantScores(t, want)
}

// scoresAfter returns what the next rebuild has made of a board that is gone.
func (f *fixture) scoresAfter(t *testing.T) map[string]float64 {
	t.Helper()
	_, err := f.Rebuild(t.Context(), f.board)
	must(t, err)
	return f.scores(t)
}

// wantScores checks that a second rebuild gives the same.
func (f *fixture) wantScores(t *testing.T, want map[string]float64) {
	t.Helper()
	_, err := f.Rebuild(t.Context(), f.board)
	must(t, err)
	equal(t, "scores", f.scores(t), want)
}

// fromCutLog: what the topic has does not give the checksum, so the board stays as it is.
func fromCutLog(t *testing.T, f *fixture) {
	f.fillLogged(t)
	topic := f.opts.Names.Topic(f.board)
	req, part := kmsg.NewPtrDeleteRecordsRequest(), kmsg.NewDeleteRecordsRequestTopicPartition()
	part.Offset = 25
	req.Topics, req.TimeoutMillis = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{part}}}, 5000
	resp, err := req.RequestWith(t.Context(), testkit.KafkaClient(t, f.kafka))
	must(t, err)
	must(t, kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode))
	before, scores := f.state(t), f.scores(t)
	_, err = f.Rebuild(t.Context(), f.board)
	if !errors.Is(err, errLogShort) || !strings.Contains(err.Error(), "the beginning of topic "+topic+" is gone") {
		t.Error(err)
	}
	equal(t, "as it was", []any{f.state(t), f.scores(t)}, []any{before, scores})
	c, err := f.Compare(t.Context(), f.board)
	must(t, err)
	if !errors.Is(c.Refused, errLogShort) {
		t.Errorf("%+v", c)
	}
}

// fromTwoLives: Redis has lost the board, and it was written again at once.
func fromTwoLives(t *testing.T, f *fixture) {
	f.fillLogged(t)
	lost := f.scores(t)
	must(t, f.redis.Del(t.Context(), f.keys(t)...).Err())
	f.give(t, "new 1", "m1", `"op":"incr","delta":3`)
	f.give(t, "new 2", "m2", `"op":"set","score":4`)
	f.give(t, "new 3", "m3", `"op":"incr","delta":5`)
	f.give(t, "new 4", "m3", `"op":"delete"`)
	f.give(t, "new 5", "another", `"op":"incr","delta":6`)
	own := f.scores(t)
	done, err := f.Rebuild(t.Context(), f.board)
	must(t, err)
	if equal(t, "the new life", f.scores(t), own); done.Life == nil || done.Life.Members != len(lost) || done.Life.Changes != 34 {
		t.Errorf("the earlier one: %+v", done.Life)
	}
	adding := *f.Rebuilder
	adding.opts.AddEarlier = true
	want := lost
	want["m1"], want["m2"], want["another"] = want["m1"]+3, 4, 6
	delete(want, "m3")
	c, err := adding.Compare(t.Context(), f.board)
	must(t, err)
	equal(t, "compared", []any{c.LedgerMembers, c.Refused}, []any{len(want), error(nil)})
	_, err = adding.Rebuild(t.Context(), f.board)
	must(t, err)
	equal(t, "both lives", f.scores(t), want)
	f.wantRepeats(t)
	for _, class := range []string{"ties", "trim"} {
		if _, err := adding.Rebuild(t.Context(), f.logged(t, class, "two").board); err == nil || !strings.Contains(err.Error(), "can't be added") {
			t.Errorf("%s: %v", class, err)
		}
	}
}

// notPublished: the board began again, and nobody has published that.
func notPublished(t *testing.T, f *fixture) {
	f.fillLogged(t)
	must(t, f.redis.Del(t.Context(), f.keys(t)...).Err())
	testkit.ChangeBoard(t, f.redis, f.opts.Names, f.board, wire.OpIncr, "m", 5)
	before := f.state(t)
	if _, err := f.Rebuild(t.Context(), f.board); !errors.Is(err, errLogShort) || !strings.Contains(err.Error(), "Redis has a history of the board") {
		t.Error(err)
	}
	equal(t, "as it was", f.state(t), before)
}

// writersWaitForLog: no post is refused, and none is lost or counted twice.
func writersWaitForLog(t *testing.T, f *fixture) {
	f.fillLogged(t)
	sum := total(f.scores(t))
	var posted atomic.Int64
	var g errgroup.Group
	stop := make(chan struct{})
	for n := range 3 {
		g.Go(func() error {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return nil
				default:
				}
				if status, answer := f.post(f.command(fmt.Sprint("c-", n, "-", i), fmt.Sprint("m", i%20), `"op":"incr","delta":1`)); status != http.StatusOK {
					return fmt.Errorf("%d %s", status, answer)
				}
				posted.Add(1)
			}
		})
	}
	for range 3 {
		before := posted.Load()
		testkit.Eventually(t, testTimeout, func() error {
			if posted.Load() < before+20 {
				return errors.New("writers are still waiting")
			}
			return nil
		})
		_, err := f.Rebuild(t.Context(), f.board)
		must(t, err)
	}
	close(stop)
	must(t, g.Wait())
	if got, want := total(f.scores(t)), sum+float64(posted.Load()); got != want {
		t.Errorf("all members have %v, want %v", got, want)
	}
}

// A record that is read does not stay in memory with what a board keeps of it.
func TestFoldKeepsNoRecords(t *testing.T) {
	const records, size = 64, 1 << 20
	begun := &stretch{run: 1, first: 1, limit: records + 1}
	l := &logged{now: newLife(), orders: make(map[string]wire.Update)}
	for n := range uint64(records) {
		record := strings.Repeat(string(rune('a'+n%2)), size) // a member's changes, and each again
		u := wire.Update{Run: 1, Seq: n + 1, Op: wire.OpIncr, Member: record[:4], OrderID: record[:20+n], By: record[:9]}
		for range 2 {
			l.now.apply(&u, begun)
			l.keepOrder(&u, begun)
		}
	}
	var now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&now)
	if now.HeapAlloc > records*size/2 {
		t.Errorf("%d MiB of heap, after %d records of one", now.HeapAlloc>>20, records)
	}
	equal(t, "members, order ids", []int{len(l.now.members), len(l.orders)}, []int{2, records})
}

// A topic has what Redis has lost in failovers, repeats, and changes in another sequence than they were made in.
func TestFold(t *testing.T) {
	incr := func(run, seq uint64, member string, score float64) wire.Update {
		return wire.Update{Run: run, Seq: seq, Member: member, Op: wire.OpIncr, Score: score}
	}
	for name, c := range map[string]struct {
		updates []wire.Update
		lives   int
		want    map[string]float64 // of the last life
	}{
		"one run, out of order and repeated": {[]wire.Update{incr(1, 2, "a", 20), incr(1, 1, "a", 10), incr(1, 3, "b", 5), incr(1, 2, "a", 20)}, 1, map[string]float64{"a": 20, "b": 5}},
		"a failover loses changes":           {[]wire.Update{incr(1, 1, "a", 10), incr(1, 2, "a", 20), incr(1, 3, "b", 5), incr(2, 2, "c", 1)}, 1, map[string]float64{"a": 10, "c": 1}},
		"two failovers, the second further back": {[]wire.Update{incr(1, 1, "a", 10), incr(1, 2, "a", 20), incr(1, 3, "b", 5), incr(2, 4, "c", 1), incr(3, 3, "d", 2)}, 1,
			map[string]float64{"a": 20, "d": 2}},
		"late updates of a lost history": {[]wire.Update{incr(1, 1, "a", 10), incr(2, 2, "c", 1), incr(1, 2, "a", 20)}, 1, map[string]float64{"a": 10, "c": 1}},
		"a new life":                     {[]wire.Update{incr(1, 1, "a", 10), incr(1, 2, "b", 10), incr(5, 1, "a", 1)}, 2, map[string]float64{"a": 1}},
		"a failover in a new life":       {[]wire.Update{incr(1, 1, "a", 10), incr(5, 1, "a", 1), incr(5, 2, "b", 1), incr(6, 2, "c", 1)}, 2, map[string]float64{"a": 1, "c": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			o, l := make(outline), newLife()
			for i := range c.updates {
				o.note(&c.updates[i])
			}
			equal(t, "lives", o.arrange(), c.lives)
			for i := range c.updates {
				if s := o.find(&c.updates[i]); s.life == c.lives-1 {
					l.apply(&c.updates[i], s)
				}
			}
			got := make(map[string]float64)
			must(t, l.Members(func(e rankcache.Entry) error { got[e.Member] = e.Score; return nil }))
			equal(t, "members", got, c.want)
		})
	}
}

// Two changes may be published in the other order: a topic that lacks one before its last is read again if more comes, and else refused.
func TestLogWithoutOneYet(t *testing.T) {
	f := newLogged(t, single).logged(t, "plain", "all")
	f.fillLogged(t)
	part := f.logged(t, "plain", "part")
	topic := func(f *fixture) string { return f.file.Log(f.opts.Names, f.board).Topic }
	testkit.CreateTopic(t, f.kafka, topic(part), 1, nil)
	client := testkit.KafkaClient(t, f.kafka, kgo.DefaultProduceTopic(topic(part)))
	all := testkit.Records(t, f.kafka, topic(f), 34)
	put := func(records ...*kgo.Record) {
		for _, r := range records {
			value := strings.ReplaceAll(string(r.Value), string(f.board), string(part.board))
			must(t, client.ProduceSync(t.Context(), kgo.StringRecord(value)).FirstErr())
		}
	}
	late := len(all) - 2
	put(all[:late]...)
	put(all[late+1:]...)
	w := &work{Rebuilder: part.Rebuilder, board: part.board}
	var err error
	w.log, err = part.opts.Updates.fold(t.Context(), part.board, 0, false)
	must(t, err)
	defer w.log.close()
	if err := w.moved(t.Context(), w.prove()); !errors.Is(err, errLogShort) || errors.Is(err, errMoved) {
		t.Errorf("one is missing: %v", err)
	}
	put(all[late])
	if err := w.moved(t.Context(), w.prove()); !errors.Is(err, errMoved) {
		t.Errorf("it came late: %v", err)
	}
	_, err = part.Rebuild(t.Context(), part.board)
	must(t, err)
	equal(t, "scores", part.scores(t), f.scores(t))
}
