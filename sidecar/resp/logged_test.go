package resp

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

const logged = rankcache.BoardID("{gifts}.day") // its meta has another name than most

// newLogged starts a listener before a Redis of its own that has the changes of some boards logged.
func newLogged(t testing.TB, boards ...rankcache.BoardID) *env {
	t.Helper()
	return newLoggedOn(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr(), boards...)
}

func newLoggedOn(t testing.TB, addr string, boards ...rankcache.BoardID) *env {
	t.Helper()
	has := func(b rankcache.BoardID) bool { return slices.Contains(append(boards, logged), b) }
	return newEnv(t, addr, func(c *Config) { c.Logged = has }).learned()
}

// meta returns the meta of a board; of one without the zero value.
func (e *env) meta(b rankcache.BoardID) (m wire.Meta) {
	e.t.Helper()
	value, err := e.client.Get(e.t.Context(), e.cfg.Names.MetaKey(b)).Result()
	if err == redis.Nil {
		return m
	}
	if err == nil {
		m, err = wire.ParseMeta(value)
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return m
}

// rows returns the members of a board, with their scores.
func (e *env) rows(b rankcache.BoardID) map[string]float64 {
	e.t.Helper()
	rows, err := e.client.ZRangeWithScores(e.t.Context(), e.cfg.Names.BoardKey(b), 0, -1).Result()
	if err != nil {
		e.t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, row := range rows {
		all[row.Member.(string)] = row.Score
	}
	return all
}

func sumOf(rows map[string]float64) (sum uint64) {
	for m, score := range rows {
		sum += wire.Hash(m, score)
	}
	return sum & wire.SumMask
}

// replayed returns what the log tells of a board's last run, and checks that each change goes on from the one before.
func (e *env) replayed(b rankcache.BoardID) (rows map[string]float64, state rankcache.State) {
	e.t.Helper()
	entries, err := e.client.XRange(e.t.Context(), wire.LogKey, "-", "+").Result()
	if err != nil {
		e.t.Fatal(err)
	}
	rows = make(map[string]float64)
	for _, entry := range entries {
		if entry.Values[wire.LogBoard] != string(b) {
			continue
		}
		updates, err := wire.DecodeLog(b, entry.Values[wire.LogChanges].(string), nil)
		if err != nil {
			e.t.Fatal(err)
		}
		for _, u := range updates {
			if u.Run > state.Run {
				clear(rows)
				state = rankcache.State{Run: u.Run}
			}
			if u.Op.Removes() {
				delete(rows, u.Member)
			} else {
				rows[u.Member] = u.Score
			}
			state.Seq++
			if state.Sum = sumOf(rows); u.Run != state.Run || u.Seq != state.Seq || u.Sum != state.Sum || u.Members != len(rows) {
				e.t.Fatalf("%+v: want seq %d, sum %x, %d members", u, state.Seq, state.Sum, len(rows))
			}
		}
	}
	state.HasSum = true
	return rows, state
}

// wantKept checks that a board's meta and the log agree with its members.
func (e *env) wantKept(b rankcache.BoardID) {
	e.t.Helper()
	m, rows := e.meta(b), e.rows(b)
	if !m.HasSum || m.Adopting || m.Sum != sumOf(rows) || int(m.Members) != len(rows) {
		e.t.Errorf("meta %+v: want sum %x, %d members", m, sumOf(rows), len(rows))
	}
	if told, state := e.replayed(b); m.Seq > 0 && (!maps.Equal(told, rows) || state != m.State) {
		e.t.Errorf("the log tells %v of %d members, Redis has %v of %d", state, len(told), m.State, len(rows))
	}
}

// randomWrite returns a command of a client on a board, now and then a malformed one.
func randomWrite(r *rand.Rand, key string) []string {
	member := func() string { return "m" + strconv.Itoa(r.IntN(12)) }
	score := func() string {
		return []string{"1", "-0", "0.1", "3e17", "-1e300", "7", "12.5", "1e21", "0x10", "nan", "x", "5"}[r.IntN(12)]
	}
	switch r.IntN(16) {
	case 0, 1, 2, 3, 4:
		args := []string{"ZADD", key}
		for _, o := range []string{"NX", "xx", "GT", "lt", "CH", "INCR"} {
			if r.IntN(5) == 0 {
				args = append(args, o)
			}
		}
		for range 1 + r.IntN(2)*r.IntN(40) {
			args = append(args, score(), member())
		}
		return args
	case 5, 6, 7, 8:
		return []string{"zIncrBy", key, score(), member()}
	case 9, 10:
		args := []string{"ZREM", key}
		for range 1 + r.IntN(3) {
			args = append(args, member())
		}
		return args
	case 11:
		return []string{[]string{"EXPIRE", "PEXPIRE"}[r.IntN(2)], key, "100000", "NX"}[:3+r.IntN(2)]
	case 12:
		return [][]string{{"PERSIST", key}, {"DEL", key}, {"UNLINK", key}, {"EXPIREAT", key, "1"}, {"ZADD", key}, {"ZINCRBY", key, "1"}}[r.IntN(6)]
	case 13:
		rank := func() string { return []string{"0", "1", "-2", "-1", "7", "-9", "99", "x"}[r.IntN(8)] }
		return []string{"ZREMRANGEBYRANK", key, rank(), rank(), "x"}[:4+r.IntN(20)/19]
	}
	return [][]string{{"ZRANGE", key, "0", "-1", "WITHSCORES"}, {"ZSCORE", key, member()}, {"ZCARD", key}, {"PING"}}[r.IntN(4)]
}

// Writes of a followed board get Redis's own replies, to the byte, in pipelines and transactions, while scripts are
// flushed now and then; and the board can be followed by its log.
func TestLoggedWritesAreRedis(t *testing.T) {
	t.Parallel()
	start := map[string]func(*testing.T) string{"redis": func(t *testing.T) string { return testkit.StartRedis(t, servers.RedisOptions{}).Addr() }, "valkey": serversToCompare["valkey"]}
	for _, of := range []struct{ server, proto string }{{"redis", "2"}, {"redis", "3"}, {"valkey", "2"}, {"valkey", "3"}} {
		t.Run(of.server+", RESP"+of.proto, func(t *testing.T) {
			e, bare := newLoggedOn(t, start[of.server](t)), dial(t, start[of.server](t))
			c, r := e.dial(), seedOf(t)
			for _, conn := range []*clientConn{c, bare} {
				conn.ask("HELLO", of.proto)
			}
			for range number() / 20 {
				var all []string
				n := 1 + r.IntN(2)*r.IntN(20)
				multi := r.IntN(4) == 0
				for i := range n {
					if multi && i == n/3 {
						all = append(all, string(appendCommand(nil, "MULTI")))
					}
					all = append(all, string(appendCommand(nil, randomWrite(r, string(logged))...)))
				}
				if multi {
					all = append(all, string(appendCommand(nil, []string{"EXEC", "EXEC", "DISCARD"}[r.IntN(3)])))
				}
				if n == 1 && r.IntN(5) == 0 {
					e.client.ScriptFlush(t.Context())
				}
				text := strings.Join(all, "")
				c.send(text)
				bare.send(text)
				if got, want := c.replies(len(all)), bare.replies(len(all)); got != want {
					t.Fatalf("%q:\ngot  %q\nwant %q", text, got, want)
				}
			}
			c.ask("ZADD", string(logged), "1", "last")
			e.wantKept(logged)
		})
	}
}

// What the script can't add up has the sum unknown, and is done as the client wants it.
func TestLoggedWritesUnknown(t *testing.T) {
	t.Parallel()
	e := newLogged(t, "other")
	key := string(logged)
	many := append(words("ZADD %s", key), slices.Repeat([]string{"1", "m"}, maxCounted+1)...)
	for _, args := range [][]string{words("ZREMRANGEBYSCORE %s 2 2", key), words("ZPOPMIN %s", key), words("ZUNIONSTORE %s 1 away", key), words("RENAME other %s", key),
		words("BZPOPMAX away %s 1", key), append(words("EVAL"), "return redis.call('ZADD', KEYS[1], 3, 'x')", "1", key), words("DEL away %s", key),
		many, {"ZADD", key, "1", "a\x01"}, words("ZADD %s inf a", key), words("ZINCRBY %s -inf a", key), words("SORT %s BY nosort STORE %s", key, key)} {
		for _, multi := range []bool{false, true} {
			t.Run(fmt.Sprintf("%.40q %v", args, multi), func(t *testing.T) {
				defer func(t testing.TB) { e.t = t }(e.t)
				e.t = t
				c := e.dial()
				e.client.Del(t.Context(), key, e.cfg.Names.MetaKey(logged), wire.LogKey)
				c.ask("ZADD", "other", "1", "a", "2", "b")
				c.ask("ZADD", key, "1", "a", "2", "b", "3", "c")
				e.wantKept(logged)
				if multi {
					c.ask("MULTI")
				}
				reply := c.ask(args...)
				if multi {
					reply = c.ask("EXEC")
				}
				if strings.Contains(reply, "-ERR") || strings.Contains(reply, "RANKCACHE") {
					t.Errorf("reply %q", reply)
				}
				if m := e.meta(logged); m.HasSum {
					t.Errorf("after %q the sum is taken as known: %+v", args, m)
				}
			})
		}
	}
}

// A trim of up to 64 members is added up and logged; one of more has the sum unknown.
func TestLoggedWritesTrim(t *testing.T) {
	t.Parallel()
	e := newLogged(t)
	c, key := e.dial(), string(logged)
	for i := range 200 {
		c.ask("ZADD", key, strconv.Itoa(i), "m"+strconv.Itoa(i))
	}
	c.want(":64\r\n", "ZREMRANGEBYRANK", key, "0", "-137")
	e.wantKept(logged)
	c.want(":0\r\n", "ZREMRANGEBYRANK", key, "136", "-1")
	e.wantKept(logged)
	c.want(":65\r\n", "ZREMRANGEBYRANK", key, "0", "64")
	if m := e.meta(logged); m.HasSum {
		t.Errorf("65 members were removed and the sum is taken as known: %+v", m)
	}
	c.ask("ZADD", key, "1", "a")
	c.want(":72\r\n", "ZREMRANGEBYRANK", key, "0", "-1")
	c.ask("ZADD", key, "1", "a")
	e.wantKept(logged)
}

// A sorted set that was there, or was written past the listener, is added up while it goes on to be written.
func TestLoggedWritesAddUp(t *testing.T) {
	t.Parallel()
	e := newLogged(t)
	c, key, r := e.dial(), string(logged), seedOf(t)
	for range 4 {
		e.client.Del(t.Context(), key, e.cfg.Names.MetaKey(logged))
		var many []redis.Z
		for i := range 1000 + r.IntN(2000) {
			many = append(many, redis.Z{Score: float64(i % 50), Member: fmt.Sprint("m", i)})
		}
		e.client.ZAdd(t.Context(), key, many...)
		foreign := r.IntN(3)
		for n := 0; ; n++ {
			args := words("ZINCRBY %s %d m%d", key, r.IntN(60)-30, r.IntN(3000))
			switch r.IntN(4) {
			case 0:
				args = words("ZADD %s %d m%d %d m%d %d n%d", key, r.IntN(50), r.IntN(3000), r.IntN(50), r.IntN(3000), r.IntN(50), r.IntN(9))
			case 1:
				args = words("ZREMRANGEBYRANK %s %d %d", key, r.IntN(3), r.IntN(6))
			case 2:
				args = words("ZREM %s m%d m%d m%d m%d n1", key, r.IntN(3000), r.IntN(3000), r.IntN(3000), r.IntN(3000))
			}
			c.ask(args...)
			m, rows := e.meta(logged), e.rows(logged)
			if m.HasSum && (m.Sum != sumOf(rows) || int(m.Members) != len(rows)) {
				t.Fatalf("after %d writes: %+v, want %x of %d members", n, m, sumOf(rows), len(rows))
			}
			if m.HasSum && foreign == 0 {
				break
			}
			if n > 60 {
				t.Fatalf("not added up: %+v of %d members", m, len(rows))
			}
			if foreign > 0 && r.IntN(4) == 0 {
				e.client.ZAdd(t.Context(), key, redis.Z{Score: -1, Member: fmt.Sprint("foreign", n)})
				foreign--
			}
		}
	}
}

// A board of a sorted set that was there, deleted ones, and boards whose changes are not logged.
func TestLoggedWritesOfOthers(t *testing.T) {
	t.Parallel()
	e := newLogged(t)
	c, key := e.dial(), string(logged)
	e.client.ZAdd(t.Context(), key, redis.Z{Score: 1, Member: "old"})
	c.want(":1\r\n", "ZADD", key, "2", "new")
	first := e.meta(logged)
	if first.Sum != sumOf(e.rows(logged)) || first.Run == 0 {
		t.Errorf("a sorted set that was there: %+v", first)
	}
	e.client.ZAdd(t.Context(), key, redis.Z{Score: 1, Member: "foreign"})
	c.want("$1\r\n3\r\n", "ZINCRBY", key, "1", "new")
	if m := e.meta(logged); m.Run <= first.Run || m.Sum != sumOf(e.rows(logged)) {
		t.Errorf("after a write past the listener: %+v, before %+v", m, first)
	}
	c.want(":1\r\n", "DEL", key)
	if m := e.meta(logged); m.Run != 0 {
		t.Errorf("the meta outlives the board: %+v", m)
	}
	c.want(":1\r\n", "ZADD", key, "2", "new")
	e.wantKept(logged)
	c.want(":1\r\n", "ZADD", "else", "2", "new")
	if m := e.meta("else"); m.Run != 0 {
		t.Errorf("a board whose changes are not logged: %+v", m)
	}
}

// The meta expires with the board, and not without it.
func TestLoggedWritesExpire(t *testing.T) {
	t.Parallel()
	e := newLogged(t)
	c, key, meta := e.dial(), string(logged), e.cfg.Names.MetaKey(logged)
	left := func(k string) int64 { return e.client.PTTL(t.Context(), k).Val().Milliseconds() }
	same := func(does bool) {
		t.Helper()
		b, m := left(key), left(meta)
		if does != (b > 0) || does != (m > 0) || does && max(b-m, m-b) > 1000 || does != (e.meta(logged).Expires > 0) {
			t.Errorf("the board expires in %d ms, its meta in %d ms by %+v", b, m, e.meta(logged))
		}
	}
	c.ask("ZADD", key, "1", "a")
	same(false)
	c.want(":1\r\n", "EXPIRE", key, "1000")
	same(true)
	c.want(":1\r\n", "PERSIST", key)
	same(false)
	c.want(":1\r\n", "PEXPIREAT", key, "99999999999999")
	same(true)
	c.want(":1\r\n", "ZREM", key, "a")
	c.want(":1\r\n", "ZADD", key, "1", "a")
	same(false)
	e.wantKept(logged)
	c.want(":1\r\n", "EXPIREAT", key, "1")
	if m := e.meta(logged); m.Run != 0 {
		t.Errorf("the meta outlives the board: %+v", m)
	}
}

// A log that is none takes nothing, a string at the board's key gets Redis's error, and closed boards are left alone.
func TestLoggedWritesOddKeys(t *testing.T) {
	t.Parallel()
	e := newLogged(t)
	c, key, meta := e.dial(), string(logged), e.cfg.Names.MetaKey(logged)
	e.client.Set(t.Context(), wire.LogKey, "text", 0)
	c.want(":1\r\n", "ZADD", key, "1", "a")
	if m := e.meta(logged); m.Seq != 1 || m.Sum != sumOf(e.rows(logged)) {
		t.Errorf("with a string at the log's key: %+v", m)
	}
	c.want("+OK\r\n", "SET", key, "text")
	c.want("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", "ZADD", key, "1", "a")
	e.client.Del(t.Context(), key)
	closed := wire.AppendMeta(nil, &wire.Meta{Life: wire.LifeClosed, State: rankcache.State{Run: 5, HasSum: true}, OrderLife: 3600, Buckets: 4})
	for _, value := range []string{string(closed), "unreadable"} {
		e.client.Set(t.Context(), meta, value, 0)
		c.ask("ZADD", key, "1", "a")
		if got := e.client.Get(t.Context(), meta).Val(); got != value {
			t.Errorf("a meta %q is %q after a write", value, got)
		}
	}
}

// Writes of clients keep the log short, so that no writer has to run.
func TestLoggedWritesCutTheLog(t *testing.T) {
	t.Parallel()
	e := newLogged(t)
	fill := "for i = 1, 70000 do redis.call('XADD', KEYS[1], '*', 'b', 'x', 'c', 'y') end"
	for range 10 {
		if err := e.client.Eval(t.Context(), fill, []string{wire.LogKey}).Err(); err != nil && err != redis.Nil {
			t.Fatal(err)
		}
	}
	c := e.dial()
	for n := range 20 { // each cuts some tens of thousands, as Redis limits it
		c.want(":1\r\n", "ZADD", string(logged), "1", fmt.Sprint(n))
	}
	if n := e.client.XLen(t.Context(), wire.LogKey).Val(); n < 600_000 || n > 601_000 {
		t.Errorf("the log has %d entries, want some 600,000", n)
	}
}

// Scripts that are flushed between the commands of a pipeline end the connection: no reply is another one than Redis's.
func TestLoggedWritesFlushedWithin(t *testing.T) {
	t.Parallel()
	e := newLogged(t)
	c, key := e.dial(), string(logged)
	var all []byte
	for _, args := range [][]string{{"ZADD", key, "1", "a"}, {"SCRIPT", "FLUSH"}, {"ZADD", key, "1", "b"}, {"PING"}} {
		all = appendCommand(all, args...)
	}
	c.send(string(all))
	if got := c.rest(); got != ":1\r\n+OK\r\n" && got != ":1\r\n" && got != "" {
		t.Errorf("got %q", got)
	}
	if rows := e.rows(logged); len(rows) != 1 {
		t.Errorf("the board has %v", rows)
	}
	e.dial().want(":1\r\n", "ZADD", key, "1", "b")
	e.wantKept(logged)
}

// A user that may not run scripts writes as before.
func TestLoggedWritesWithoutScripts(t *testing.T) {
	t.Parallel()
	redisAddr := testkit.StartRedis(t, servers.RedisOptions{}).Addr()
	admin := redis.NewClient(&redis.Options{Addr: redisAddr})
	t.Cleanup(func() { _ = admin.Close() })
	admin.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-@scripting")
	e := newEnv(t, redisAddr, func(c *Config) {
		c.Logged = func(rankcache.BoardID) bool { return true }
		c.Credentials = func() (string, string) { return "app", "pw" }
	}).learned()
	c := e.dial()
	c.want("+OK\r\n", "AUTH", "app", "pw")
	c.want(":1\r\n", "ZADD", string(logged), "1", "a")
	if m := e.meta(logged); m.Run != 0 {
		t.Errorf("%+v", m)
	}
}

// BenchmarkLoggedWrites is what a ZINCRBY costs the CPU of Redis: as it is, and as the script runs it.
func BenchmarkLoggedWrites(b *testing.B) {
	for _, n := range []int{1, 100} {
		for _, key := range []string{"bare", string(logged)} {
			b.Run(fmt.Sprintf("%d at once/%s", n, key), func(b *testing.B) {
				e := newLogged(b)
				c, r := e.dial(), rand.New(rand.NewPCG(1, 1))
				for i := range 10_000 {
					e.client.ZAdd(b.Context(), "bare", redis.Z{Score: float64(i), Member: fmt.Sprint("m", i)})
				}
				c.ask("ZADD", string(logged), "0", "first")
				calls := make([]string, 10_000)
				for i := range calls {
					calls[i] = string(appendCommand(nil, "ZINCRBY", key, "1", fmt.Sprint("m", r.IntN(10_000))))
				}
				before := e.redisCPU()
				for i := range b.N {
					var all strings.Builder
					for k := range n {
						all.WriteString(calls[(i*n+k)%len(calls)])
					}
					c.send(all.String())
					c.replies(n)
				}
				b.ReportMetric((e.redisCPU()-before)*1e6/float64(b.N*n), "redis-us/op")
			})
		}
	}
}

// redisCPU returns the seconds of CPU that Redis has used.
func (e *env) redisCPU() (seconds float64) {
	e.t.Helper()
	info := e.client.InfoMap(e.t.Context(), "cpu").Val()["CPU"]
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		s, err := strconv.ParseFloat(info[field], 64)
		if err != nil {
			e.t.Fatal(err)
		}
		seconds += s
	}
	return seconds
}
