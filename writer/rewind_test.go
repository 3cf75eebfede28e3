package writer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/internal/lab/servers"
	"rankcache/internal/masters"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
	"rankcache/writer/internal/rewind"
)

// address is where a service's Redis is now, as a Sentinel or a name would tell.
type address struct{ atomic.Pointer[string] }

func (a *address) moveTo(r *servers.Redis) { a.Store(new(r.Addr())) }

// client returns a client of whichever server has the address.
func (a *address) client(t testing.TB) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: "redis", Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true, DialerRetries: 1,
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", *a.Load())
		}})
	t.Cleanup(func() { client.Close() })
	return client
}

// durableFixture is a writer of classes gift and laps, which are durable, and plain, which is not.
type durableFixture struct {
	*fixture
	at    address
	zone  string
	class string // of the posts: gift, or laps
	posts int
	want  map[string]float64
}

func newDurable(t *testing.T, r *servers.Redis, kafkaAddr string) *durableFixture {
	t.Helper()
	file, err := rooms.Parse([]byte(`
classes:
  - {name: gift, board: "gift:{zone}", period: none, ops: [incr], durable: true}
  - {name: plain, board: "plain:{zone}", period: none, ops: [incr]}
  - {name: laps, board: "laps:{zone}", period: none, order: asc, ops: [best], durable: true}
  - {name: day, board: "day:{zone}:{period}", period: day, ops: [incr], keep: 96h}
  - {name: days, board: "days:{zone}:{period}", rolling: {of: day, last: 3}}` + guildClasses))
	must(t, err)
	d := &durableFixture{class: "gift", want: make(map[string]float64)}
	d.at.moveTo(r)
	d.fixture = newFixture(t, kafkaAddr, func(o *Options) {
		o.Redis, o.Tiers, o.OrderBuckets = d.at.client(t), tiers{all: rooms.ModeSuperHot, file: file}, 1
	})
	d.zone = d.fixture.zone()
	d.choose("gift")
	return d
}

// choose sets the class of the posts.
func (d *durableFixture) choose(class string) {
	d.class, d.board = class, rankcache.BoardID(class+":"+d.zone)
}

// hash is the key of the positions.
func (d *durableFixture) hash() string {
	p := d.rewinds.positions
	return p.keys(rewind.Master(masters.Tag(0)))[0]
}

func (d *durableFixture) gift(class string, n int) string {
	if class == "laps" {
		return fmt.Sprintf(`{"order":"o%d","class":%q,"dims":{"zone":%q},"member":"m%d","op":"best","score":%v,"at":%d}`, n, class, d.zone, n%5, lapOf(n), d.fixture.at)
	}
	by := ""
	if class == "fans" && guildOf(n) != "" {
		by = fmt.Sprintf(`"by":{"guild":%q},`, guildOf(n))
	}
	return fmt.Sprintf(`{"order":"o%d","class":%q,"dims":{"zone":%q},%s"member":"m%d","op":"incr","delta":%d,"at":%d}`, n, class, d.zone, by, n%5, 1+n%7, d.fixture.at)
}

// guildOf is the guild of post n, which may have none.
func guildOf(n int) string { return []string{"g0", "g1", ""}[n%3] }

// checkGuilds checks that each post has counted for its guild once.
func (d *durableFixture) checkGuilds(t *testing.T) {
	t.Helper()
	want := make(map[string]map[string]float64)
	for n := range d.posts {
		guild, delta := guildOf(n), float64(1+n%7)
		for board, member := range map[string]string{"guilds:" + d.zone: guild, "mates:" + d.zone + ":" + guild: fmt.Sprint("m", n%5)} {
			if want[board] == nil {
				want[board] = make(map[string]float64)
			}
			if guild != "" {
				want[board][member] += delta
			}
		}
	}
	for board, scores := range want {
		of := *d.fixture
		of.board = rankcache.BoardID(board)
		if equal(t, board, of.scores(t), scores); len(scores) > 0 {
			of.checkSum(t)
		}
	}
}

// lapOf is the time of post n: mostly better than those before, and sometimes not.
func lapOf(n int) float64 { return float64(200 - n - n%4*9) }

// expect has the posts' oracle take post n.
func (d *durableFixture) expect(n int) {
	member := fmt.Sprint("m", n%5)
	if d.class != "laps" {
		d.want[member] += float64(1 + n%7)
	} else if old, ok := d.want[member]; !ok || -lapOf(n) > old {
		d.want[member] = -lapOf(n)
	}
}

// post posts n changes, which are acknowledged.
func (d *durableFixture) post(t *testing.T, n int) {
	t.Helper()
	for range n {
		status, answer := d.fixture.post(t, d.gift(d.class, d.posts))
		if status != 200 {
			t.Fatal(status, answer)
		}
		d.expect(d.posts)
		d.posts++
	}
}

// awaitWhole waits until the board has each increment once, and the writer says so.
func (d *durableFixture) awaitWhole(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, testTimeout, func() error {
		st := d.rewinds.status(t.Context())
		if st == nil || st.State != "whole" {
			return fmt.Errorf("status %+v", st)
		}
		rows, err := d.client.ZRangeWithScores(t.Context(), string(d.board), 0, -1).Result()
		if err != nil {
			return err
		}
		for _, row := range rows {
			if member := row.Member.(string); row.Score != d.want[member] {
				return fmt.Errorf("%s has %v, want %v", member, row.Score, d.want[member])
			}
		}
		if len(rows) != len(d.want) {
			return fmt.Errorf("%d members, want %d", len(rows), len(d.want))
		}
		return nil
	})
}

// awaitPositions waits until Redis is told that it has all posts.
func (d *durableFixture) awaitPositions(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, testTimeout, func() error {
		h, next := d.positions(t), 0
		for _, p := range h.Of {
			next += int(p.Next)
		}
		if next != d.posts {
			return fmt.Errorf("positions %+v, want %d in all", h, d.posts)
		}
		return nil
	})
}

func (d *durableFixture) positions(t *testing.T) rewind.Hash {
	t.Helper()
	h, err := d.rewinds.positions.hash(t.Context(), rewind.Master(masters.Tag(0)))
	must(t, err)
	return h
}

// Redis is whole if it has what is committed, by its own account: whichever writer may have been led to another server meanwhile.
func TestStatusIsWhatRedisHas(t *testing.T) {
	d := newDurable(t, testkit.StartRedis(t, servers.RedisOptions{}), testkit.Kfake(t).Addr())
	d.run(t)
	d.post(t, 10)
	d.awaitWhole(t)
	d.awaitPositions(t)
	for id, p := range d.positions(t).Of {
		if p.Next == 0 {
			continue
		}
		for next, era := range map[int64]rewind.Era{p.Next - 1: p.Healed, p.Next: "0123456789abcdef"} {
			must(t, d.client.HSet(t.Context(), d.hash(), id, fmt.Sprintf("%s %d %s", p.Topic, next, era)).Err())
			st := d.rewinds.status(t.Context())
			equal(t, "state", st.State, "rewinding")
			equal(t, "partitions", st.Rewinding, []int32{id})
		}
		must(t, d.client.HSet(t.Context(), d.hash(), id, fmt.Sprintf("%s %d %s", p.Topic, p.Next, p.Healed)).Err())
		equal(t, "state", d.rewinds.status(t.Context()).State, "whole")
	}
}

// checkOnce posts all again: each is a repeat, and changes nothing.
func (d *durableFixture) checkOnce(t *testing.T) {
	t.Helper()
	for n := range d.posts {
		status, answer := d.fixture.post(t, d.gift(d.class, n))
		if status != 200 || !strings.Contains(answer, `"duplicate":true`) {
			t.Fatal(status, answer)
		}
	}
	equal(t, "board", d.scores(t), d.want)
	d.checkSum(t)
}

func replicaOf(t *testing.T, master *servers.Redis) *servers.Redis {
	t.Helper()
	r := testkit.StartRedis(t, servers.RedisOptions{})
	host, port, _ := strings.Cut(master.Addr(), ":")
	must(t, r.Do(t.Context(), "REPLICAOF", host, port))
	return r
}

// cut has a replica stay as it is, once it has what its master has.
func (d *durableFixture) cut(t *testing.T, replica *servers.Redis) {
	t.Helper()
	client := replica.Client()
	defer client.Close()
	testkit.Eventually(t, testTimeout, func() error {
		if seq := client.ZScore(t.Context(), string(d.board), "m0").Val(); seq != d.want["m0"] {
			return fmt.Errorf("the replica has %v of m0, want %v", seq, d.want["m0"])
		}
		n, err := client.HLen(t.Context(), d.hash()).Result()
		if err == nil && n < 3 { // life and two partitions
			err = fmt.Errorf("the replica has %d fields of positions", n)
		}
		return err
	})
	must(t, replica.Do(t.Context(), "REPLICAOF", "NO", "ONE"))
}

// A master dies with changes that its replica never got. They were acknowledged and are in the log, so
// the new master gets them again.
func TestFailoverLosesNothing(t *testing.T) {
	for _, class := range []string{"gift", "laps", "fans"} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			failoverLosesNothing(t, class)
		})
	}
}

func failoverLosesNothing(t *testing.T, class string) {
	master := testkit.StartRedis(t, servers.RedisOptions{})
	replica := replicaOf(t, master)
	d := newDurable(t, master, testkit.Kafka(t))
	d.choose(class)
	d.run(t)
	d.post(t, 30)
	d.cut(t, replica)
	d.post(t, 30)
	d.awaitPositions(t)
	run := d.meta(t).Run
	must(t, master.Kill())
	d.at.moveTo(replica)
	d.awaitWhole(t)
	if again := d.meta(t); again.Run <= run {
		t.Errorf("run %d after run %d: two changes may have the same run and seq", again.Run, run)
	}
	equal(t, "era changes", testutil.ToFloat64(d.metrics.rewind.changes), 1.0)
	equal(t, "damaged", testutil.ToFloat64(d.metrics.rewind.damaged), 0.0)
	d.post(t, 5)
	d.awaitPositions(t)
	d.checkOnce(t)
	if class == "fans" {
		d.checkGuilds(t)
	}
	for member, score := range d.want { // what was lost is published again, under the new run
		var last float64
		for _, u := range d.published(t) {
			if u.Member == member && u.Run == d.meta(t).Run {
				last = u.Score
			}
		}
		equal(t, "published of "+member, last, score)
	}
}

// Redis is emptied, comes back as it was a while ago, or has lost its positions alone: the log has what is missing.
func TestRedisGoesBack(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *durableFixture, *servers.Redis){
		"emptied": func(t *testing.T, d *durableFixture, _ *servers.Redis) {
			must(t, d.client.FlushAll(t.Context()).Err())
		},
		"as it was": func(t *testing.T, _ *durableFixture, r *servers.Redis) {
			must(t, r.Kill())
			must(t, r.Restart(t.Context()))
		},
		"without positions": func(t *testing.T, d *durableFixture, _ *servers.Redis) {
			must(t, d.client.Del(t.Context(), d.hash()).Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testkit.StartRedis(t, servers.RedisOptions{})
			d := newDurable(t, r, testkit.Kfake(t).Addr())
			d.run(t)
			d.post(t, 20)
			d.awaitPositions(t)
			must(t, d.client.Save(t.Context()).Err())
			d.post(t, 20)
			plain := d.gift("plain", 1)
			d.produce(t, plain)
			d.awaitPlain(t, 1)
			d.awaitCommitted(t, 41) // what is not is applied again, whatever its class
			rounds, told := d.rewinds.round.Load().number, len(d.published(t))
			lose(t, d, r)
			testkit.Eventually(t, testTimeout, func() error {
				if d.rewinds.round.Load().number == rounds {
					return errors.New("not noticed")
				}
				return nil
			})
			d.awaitWhole(t)
			if name == "without positions" { // the hash is another one: what was published of it may have been lost, so each is once more
				equal(t, "published", len(d.published(t)), told+40)
			}
			d.checkOnce(t)
			d.post(t, 5)
			d.awaitWhole(t)
			if name != "without positions" { // as without durable classes: nobody counts a command twice
				d.awaitPlain(t, 0)
			}
		})
	}
}

// awaitPlain waits until the log is read and the board that is not durable has so many members.
func (d *durableFixture) awaitPlain(t *testing.T, members int64) {
	t.Helper()
	testkit.Eventually(t, testTimeout, func() error {
		if n := d.client.ZCard(t.Context(), "plain:"+d.zone).Val(); n != members {
			return fmt.Errorf("%d members, want %d", n, members)
		}
		return nil
	})
}

// awaitCommitted waits until the group has committed so many records.
func (d *durableFixture) awaitCommitted(t *testing.T, records int64) {
	t.Helper()
	client := testkit.KafkaClient(t, d.kafka)
	testkit.Eventually(t, testTimeout, func() error {
		n, err := testkit.Committed(t.Context(), client, d.opts.Group, d.opts.Names.Commands, 2)
		if err == nil && n != records {
			err = fmt.Errorf("%d records committed, want %d", n, records)
		}
		return err
	})
}

// A second master dies while the first one's loss is made up for.
func TestSecondFailoverInRewind(t *testing.T) {
	t.Parallel()
	first := testkit.StartRedis(t, servers.RedisOptions{})
	second := replicaOf(t, first)
	third := replicaOf(t, second)
	d := newDurable(t, first, testkit.Kfake(t).Addr())
	d.run(t)
	d.post(t, 20)
	d.cut(t, third)
	d.post(t, 20)
	d.cut(t, second)
	d.post(t, 20)
	d.awaitPositions(t)
	round := d.rewinds.round.Load().number
	must(t, first.Kill())
	d.at.moveTo(second)
	testkit.Eventually(t, testTimeout, func() error {
		if d.rewinds.round.Load().number == round {
			return errors.New("not noticed")
		}
		return nil
	})
	must(t, second.Kill())
	d.at.moveTo(third)
	d.awaitWhole(t)
	d.post(t, 5)
	d.awaitWhole(t)
	d.checkOnce(t)
}

// An address leads to two masters in turns, which have the same boards up to some moment. The one to which it leads in the end
// gets what the other one was given.
func TestAlternatingAddress(t *testing.T) {
	t.Parallel()
	one := testkit.StartRedis(t, servers.RedisOptions{})
	other := replicaOf(t, one)
	d := newDurable(t, one, testkit.Kfake(t).Addr())
	d.run(t)
	d.post(t, 10)
	d.cut(t, other)
	move := func(to *servers.Redis) {
		d.at.moveTo(to)
		must(t, errors.Join(one.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal"), other.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal")))
		d.post(t, 5)
	}
	for _, to := range []*servers.Redis{other, one, other, one, other} {
		move(to)
	}
	testkit.Eventually(t, testTimeout, func() error { // a busy writer does not see each move
		if testutil.ToFloat64(d.metrics.rewind.alternating) > 0 {
			return nil
		}
		move(one)
		move(other)
		return errors.New("nobody was told")
	})
	d.awaitWhole(t)
	d.post(t, 5)
	d.awaitWhole(t)
	d.checkOnce(t)
}

// graceOf are tiers with a class of hours whose grace a test sets.
type graceOf struct {
	tiers
	now *atomic.Pointer[rooms.File]
}

func (g graceOf) File() *rooms.File { return g.now.Load() }

func (g graceOf) set(t *testing.T, grace time.Duration) *rooms.Class {
	t.Helper()
	file, err := rooms.Parse(fmt.Appendf(nil, `
classes:
  - {name: gift, board: "gift:{zone}:{period}", period: 1h, grace: %v, ops: [incr], durable: true}
`, grace))
	must(t, err)
	g.now.Store(file)
	return file.Class("gift")
}

// newGraceful is a writer of that class, what posts an increment of the period that has ended, and when it has.
func newGraceful(t *testing.T, master *servers.Redis) (d *durableFixture, post func(order int) (int, string), end time.Time) {
	t.Helper()
	d = newDurable(t, master, testkit.RealKafka(t)) // which dates records
	tiers := graceOf{now: new(atomic.Pointer[rooms.File])}
	kind, end := tiers.set(t, 2*time.Hour), time.Now().UTC().Truncate(time.Hour)
	board, err := kind.At(map[string]string{"zone": d.zone}, end.Add(-1))
	must(t, err)
	d.opts.Tiers = tiers
	d.Writer, err = New(d.opts)
	must(t, err)
	d.board = board.ID
	return d, func(order int) (int, string) {
		return d.fixture.post(t, fmt.Sprintf(`{"order":"o%d","class":"gift","dims":{"zone":%q},"member":"m%d","op":"incr","delta":1,"at":%d}`, order, d.zone, order%3, end.UnixMilli()-1))
	}, end
}

// Commands that arrived in the last millisecond of their period's grace are acknowledged, and lost when it is over: they are
// applied again, while a new one is late.
func TestLossAfterTheGrace(t *testing.T) {
	t.Parallel()
	master := testkit.StartRedis(t, servers.RedisOptions{})
	replica := replicaOf(t, master)
	d, post, end := newGraceful(t, master)
	d.run(t)
	acknowledged := func(n int) {
		t.Helper()
		for range n {
			status, answer := post(d.posts)
			equal(t, answer, status, 200)
			d.want[fmt.Sprint("m", d.posts%3)]++
			d.posts++
		}
	}
	acknowledged(10)
	d.cut(t, replica)
	acknowledged(20)
	d.opts.Tiers.(graceOf).set(t, time.Since(end).Truncate(time.Millisecond))
	d.awaitPositions(t)
	must(t, master.Kill())
	d.at.moveTo(replica)
	d.awaitWhole(t)
	status, answer := post(d.posts)
	checkProblem(t, "a new one", status, answer, httpserve.Problem{Status: 422, Code: "late"})
	for n := range d.posts {
		if status, answer = post(n); status != 200 || !strings.Contains(answer, `"duplicate":true`) {
			t.Fatal(status, answer)
		}
	}
	d.checkSum(t)
}

// A writer dies somewhere in a rewind, and another one goes on.
func TestWriterDiesInRewind(t *testing.T) {
	t.Parallel()
	for range testkit.Sized(2, 20) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			master := testkit.StartRedis(t, servers.RedisOptions{})
			replica := replicaOf(t, master)
			d := newDurable(t, master, testkit.Kfake(t).Addr())
			d.grace = 10 * time.Millisecond
			ctx, die := context.WithCancel(t.Context())
			mortal := &mortal{die: die}
			mortal.left.Store(1 << 40)
			d.client.AddHook(mortal)
			ended := make(chan error, 1)
			go func() { ended <- d.Run(ctx) }()
			testkit.Eventually(t, testTimeout, func() error {
				if d.producer.Load() == nil {
					return errors.New("it does not run yet")
				}
				return nil
			})
			d.post(t, 20)
			d.cut(t, replica)
			d.post(t, 20)
			d.awaitPositions(t)
			mortal.left.Store(rand.Int64N(30))
			must(t, master.Kill())
			d.at.moveTo(replica)
			<-ended
			opts := d.opts
			opts.Redis = d.at.client(t)
			next, err := New(opts)
			must(t, err)
			d.fixture = &fixture{next, opts.Redis.(*redis.Client), d.kafka, d.board, d.fixture.at}
			d.run(t)
			d.awaitWhole(t)
			d.checkOnce(t)
		})
	}
}

// A writer without durable classes asks nobody for positions; once there is one, it does.
func TestRewindsCostNothing(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) { o.Redis = redisClient(t, server.Addr()) })
	h.run(t)
	h.produce(t, h.command("o1", "a"))
	h.await(t, "applied", 1)
	must(t, h.client.ConfigResetStat(t.Context()).Err())
	h.rewinds.tick(t.Context())
	equal(t, "round", h.rewinds.round.Load().number, uint64(0))
	if stats := h.client.Info(t.Context(), "commandstats").Val(); strings.Contains(stats, "cmdstat_info") {
		t.Error("the server was asked for its history")
	}
	if keys := h.client.Keys(t.Context(), "rankcache:applied:*").Val(); len(keys) > 0 {
		t.Error("positions", keys)
	}
}

// The positions' script compares the era and the life of the hash, and keeps the higher offset of the same topic.
func TestPositions(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) {
		o.Redis = redisClient(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr())
	})
	p, ctx := positions{h.applier.adopter}, t.Context()
	all, err := h.applier.masters(ctx)
	must(t, err)
	era, master := all[0].era, all[0].name
	made, ok, err := p.read(ctx, master, era)
	must(t, err)
	equal(t, "made", []any{ok, made.Damaged, made.Life != "", made.Of}, []any{true, false, true, map[int32]rewind.Position{}})
	for i, c := range []struct {
		era   rewind.Era
		life  string
		topic string
		next  int64
		heal  bool
		reset bool
		want  rewind.Answer
		there rewind.Position
	}{
		{era, made.Life, "a", 10, false, false, rewind.Wrote, rewind.Position{Topic: "a", Next: 10, Healed: "-"}},
		{era, made.Life, "a", 9, false, false, rewind.Wrote, rewind.Position{Topic: "a", Next: 10, Healed: "-"}},
		{era, made.Life, "a", 100, true, false, rewind.Wrote, rewind.Position{Topic: "a", Next: 100, Healed: era}},
		{era, made.Life, "a", 20, false, true, rewind.Wrote, rewind.Position{Topic: "a", Next: 20, Healed: era}},
		{"0123456789abcdef", made.Life, "a", 200, false, false, rewind.OtherEra, rewind.Position{Topic: "a", Next: 20, Healed: era}},
		{era, "another", "a", 200, false, false, rewind.Gone, rewind.Position{Topic: "a", Next: 20, Healed: era}},
		{era, made.Life, "b", 3, false, false, rewind.Wrote, rewind.Position{Topic: "b", Next: 3, Healed: era}},
	} {
		got, err := p.write(ctx, []rewind.WritePosition{{Master: master, Era: c.era, Life: c.life, Partition: 7, Topic: c.topic, Next: c.next, Heal: c.heal, Reset: c.reset}})
		must(t, err)
		read, ok, err := p.read(ctx, master, era)
		must(t, err)
		equal(t, fmt.Sprint("write ", i), []any{got, ok, read.Life, read.Of[7]}, []any{c.want, true, made.Life, c.there})
	}
	if _, ok, err = p.read(ctx, master, "0123456789abcdef"); ok || err != nil {
		t.Error("read in another era:", ok, err)
	}
	for _, c := range []struct {
		era  rewind.Era
		life string
		want rewind.Answer
	}{{"0123456789abcdef", made.Life, rewind.OtherEra}, {era, "another", rewind.Gone}, {era, made.Life, rewind.Wrote}} {
		now, err := p.hash(ctx, master)
		must(t, err)
		equal(t, "before the mark", []any{now.Life, now.Damaged}, []any{made.Life, false})
		got, err := p.markDamaged(ctx, rewind.MarkDamaged{Master: master, Era: c.era, Life: c.life})
		must(t, err)
		equal(t, "mark", got, c.want)
	}
	now, err := p.hash(ctx, master)
	must(t, err)
	read, _, err := p.read(ctx, master, era)
	must(t, err)
	equal(t, "marked", []any{now.Damaged, read.Damaged, len(read.Of)}, []any{true, true, 1})
}

// published returns the board's updates.
func (d *durableFixture) published(t *testing.T) (all []wire.Update) {
	t.Helper()
	for _, value := range d.allUpdates(t) {
		var u wire.Update
		must(t, wire.DecodeUpdate([]byte(value), &u))
		all = append(all, u)
	}
	return all
}

// Where the last durable class was taken out, what it has left is looked after by the setting.
func TestOrderLifeWithoutDurableClasses(t *testing.T) {
	t.Parallel()
	a := asker{tiers: tiers{}, positions: positions{&adopter{birth: birth{orderLife: time.Hour}}}}
	equal(t, "order life", a.orderLife(slices.Max[[]time.Duration]), time.Hour)
}
