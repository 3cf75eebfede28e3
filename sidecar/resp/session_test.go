package resp

import (
	"crypto/sha1"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	"rankcache/rooms"
	"rankcache/sidecar"
)

func falling(i int) float64 { return float64(1000 - i) }

// TestHandshake: what clients begin with is answered here, and repeated to the upstream.
func TestHandshake(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	c := e.dial()
	if got := c.ask("HELLO", "3", "SETNAME", "shop"); !strings.HasPrefix(got, "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n") || !strings.Contains(got, fmt.Sprintf("$2\r\nid\r\n:%d\r\n", firstID+1)) {
		t.Errorf("HELLO: %q", got)
	}
	c.want("+PONG\r\n", "PING")
	c.want("$2\r\nhi\r\n", "PING", "hi")
	c.want("$1\r\nx\r\n", "ECHO", "x")
	c.want("+OK\r\n", "SELECT", "0")
	c.want("$4\r\nshop\r\n", "CLIENT", "GETNAME")
	c.want(fmt.Sprintf(":%d\r\n", firstID+1), "CLIENT", "ID")
	c.want("-ERR unknown subcommand 'setinfo'. Try CLIENT HELP.\r\n", "client", "setinfo", "LIB-NAME", "x")
	c.want(",991\r\n", "ZSCORE", "open", fixture.Member(9))
	if n := e.Status().Upstreams; n != 0 {
		t.Fatalf("%d upstreams before any is needed", n)
	}
	c.want("%1\r\n$1\r\na\r\n$1\r\n1\r\n", "EVAL", "redis.setresp(3) redis.call('hset',KEYS[1],'a','1') return redis.call('hgetall',KEYS[1])", "1", "h")
	if list := e.client.ClientList(t.Context()).Val(); !strings.Contains(list, "name=shop") {
		t.Errorf("the upstream has no name: %s", list)
	}
	c.want("+OK\r\n", "CLIENT", "SETNAME", "later")
	if list := e.client.ClientList(t.Context()).Val(); !strings.Contains(list, "name=later") {
		t.Errorf("the upstream keeps the old name: %s", list)
	}
	c.want("+OK\r\n", "QUIT")
	if rest := c.rest(); rest != "" {
		t.Errorf("after QUIT: %q", rest)
	}
}

func TestLogin(t *testing.T) {
	r := testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--user", "default", "on", ">secret", "~*", "&*", "+@all", "--user", "guest", "on", ">guest", "~none", "+@all"}})
	e := newEnv(t, r.Addr(), func(c *Config) { c.Credentials = func() (string, string) { return "", "secret" } })
	e.client.Options().Password = "secret"
	e.learned().fill(10, falling)
	score := "$3\r\n991\r\n"

	c := e.dial()
	c.want("-NOAUTH Authentication required.\r\n", "ZSCORE", "open", fixture.Member(9))
	c.want("-NOAUTH Authentication required.\r\n", "PING")
	c.want("+OK\r\n", "AUTH", "secret")
	c.want(score, "ZSCORE", "open", fixture.Member(9))
	c.want("+OK\r\n", "SET", "k", "v")
	e.wantCounted(zScore, sourceLocal, 1)

	c = e.dial()
	c.ask("HELLO", "2", "AUTH", "default", "secret")
	c.want(score, "ZSCORE", "open", fixture.Member(9))
	e.wantCounted(zScore, sourceLocal, 2)

	c = e.dial()
	if got := c.ask("AUTH", "wrong"); !strings.HasPrefix(got, "-WRONGPASS") {
		t.Errorf("a wrong password: %q", got)
	}
	c = e.dial()
	c.want("+OK\r\n", "AUTH", "guest", "guest")
	if got := c.ask("ZSCORE", "open", fixture.Member(9)); !strings.HasPrefix(got, "-NOPERM") {
		t.Errorf("a user who may not read the board: %q", got)
	}
	e.wantCounted(zScore, sourceLocal, 2)
}

// TestOwnWrites: a connection reads what it wrote, also where the copy does not have it yet.
func TestOwnWrites(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	one, other := e.dial(), e.dial()
	best := func(member string) string { return string(appendBulk(appendArray(nil, 1), member)) }
	read := words("ZREVRANGE hot 0 0")
	one.want(best(fixture.Member(0)), read...)
	one.want("$4\r\n2993\r\n", words("ZINCRBY hot 2000 %s", fixture.Member(7))...)
	one.want(best(fixture.Member(7)), read...)
	other.want(best(fixture.Member(0)), read...)
	one.send(string(appendCommand(appendCommand(nil, words("ZINCRBY hot 2000 %s", fixture.Member(8))...), read...)))
	if got, want := one.replies(2), "$4\r\n2992\r\n"+best(fixture.Member(7)); got != want {
		t.Errorf("in a pipeline: %q, want %q", got, want)
	}
	e.hot.At = time.Now()
	one.want("$8\r\nlistpack\r\n", "OBJECT", "ENCODING", "hot") // subcommands that only read are no writes
	one.ask("memory", "usage", "hot")
	one.want(best(fixture.Member(0)), read...)
	e.hot.At = time.Now() // the top, as it was, is known to be what Redis has now
	one.want(best(fixture.Member(0)), read...)
	one.want(":1\r\n", "EVAL", "return 1", "0")
	one.want(best(fixture.Member(7)), read...)
	e.hot.At = time.Now()
	one.want(best(fixture.Member(0)), read...)
	one.want("+OK\r\n", "MULTI")
	one.want("+QUEUED\r\n", read...)
	one.want("*1\r\n"+best(fixture.Member(7)), "EXEC")
	one.want(best(fixture.Member(0)), read...) // nothing was written
	one.want("+OK\r\n", "MULTI")
	one.want("+QUEUED\r\n", words("ZINCRBY hot 1 %s", fixture.Member(7))...)
	e.hot.At = time.Now() // before EXEC
	one.want("*1\r\n$4\r\n2994\r\n", "EXEC")
	one.want(best(fixture.Member(7)), read...)
	e.hot.At = time.Now()
	one.want(best(fixture.Member(0)), read...)
	one.want("+OK\r\n", "MULTI")
	one.want("+QUEUED\r\n", "EVAL", "return 1", "0")
	one.want("*1\r\n:1\r\n", "EXEC")
	one.want(best(fixture.Member(7)), read...) // the script may have written to any board
}

// TestOldCopies: a copy from before this process, such as one from a file, is as good after
// writes of other keys.
func TestOldCopies(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	e.hot.At = time.Now().Add(-time.Hour)
	c := e.dial()
	c.want("+OK\r\n", "SET", "other", "1")
	c.want("*1\r\n$7\r\nm000000\r\n", words("ZREVRANGE hot 0 0")...)
	e.wantCounted(zRevRange, sourceHot, 1)
}

// TestWritesToOpenBoards are refused, also in transactions; what only reads the board is not.
func TestWritesToOpenBoards(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	c := e.dial()
	for _, write := range []string{"ZADD open 1 a", "zincrby open 1 a", "DEL x open", "EXPIRE open 10", "RENAME open x", "ZUNIONSTORE open 1 hot", "SORT hot BY nosort STORE open", "EVAL return(redis.call('DEL',KEYS[1])) 1 open", "ZRANGESTORE open hot 0 1"} {
		c.want(refusal, strings.Fields(write)...)
	}
	c.want(":10\r\n", words("ZUNIONSTORE copy 1 open")...)
	c.want(":2\r\n", words("ZRANGESTORE copy open 0 1")...)
	c.want(":1\r\n", words("SADD names open")...)
	if n := e.client.ZCard(t.Context(), "open").Val(); n != 10 {
		t.Errorf("the board has %d members", n)
	}
	c.want("+OK\r\n", "MULTI")
	c.want("+QUEUED\r\n", "SET", "x", "1")
	c.want(refusal, "ZADD", "open", "1", "a")
	c.want("+QUEUED\r\n", "SET", "x", "2")
	c.want("-EXECABORT Transaction discarded because of previous errors.\r\n", "EXEC")
	c.want("$-1\r\n", "GET", "x")
	c.want("-ERR EXEC without MULTI\r\n", "EXEC")
	c.send("MULTI\r\nSET x 1\r\nZADD open 1 a\r\nEXEC\r\nZCARD open\r\n")
	if got, want := c.replies(5), "+OK\r\n+QUEUED\r\n"+refusal+"-EXECABORT Transaction discarded because of previous errors.\r\n:10\r\n"; got != want {
		t.Errorf("in a pipeline: %q, want %q", got, want)
	}
}

// TestScriptsThatReadOpenBoards: what only reads passes, whatever its form; the script that writes is refused, and so is each where
// Redis can't tell.
func TestScriptsThatReadOpenBoards(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	c := e.dial()
	const page = "return {redis.call('ZCARD', KEYS[1]), redis.call('ZREVRANGE', KEYS[1], 0, 0)[1], redis.call('ZREVRANK', KEYS[1], ARGV[1])}"
	want := "*3\r\n:10\r\n$7\r\nm000000\r\n:9\r\n"
	c.want(want, "EVAL", page, "1", "open", "m000009")
	c.want("$40\r\n"+sha(page)+"\r\n", "SCRIPT", "LOAD", page)
	c.want(want, "evalsha", sha(page), "1", "open", "m000009")
	if got := c.ask("EVALSHA", strings.Repeat("0", 40), "1", "open"); !strings.HasPrefix(got, "-NOSCRIPT") {
		t.Errorf("a script that is not there: %q", got)
	}
	c.want("+OK\r\n", "SET", "k", "v")
	c.want(":1\r\n", "EVAL", "return redis.call('DEL', KEYS[1])", "1", "k")
	c.want(refusal, "EVAL", "redis.call('ZADD', KEYS[1], 1, 'x') return 1", "1", "open")
	e.publishLater()
	c.want(want, "EVAL", page, "1", "open", "m000009")
	c.want(":10\r\n", "ZCARD", "open")
	e.wantCounted(zCard, sourceLocal, 1) // the reading script does not count as a write
	c.send(string(appendCommand(appendCommand(appendCommand(nil, "SET", "k", "w"), "EVAL", page, "1", "open", "m000009"), "GET", "k")))
	if got := c.replies(3); got != "+OK\r\n"+want+"$1\r\nw\r\n" {
		t.Errorf("in a pipeline: %q", got)
	}
	c.want("+OK\r\n", "MULTI")
	c.want(refusal, "EVAL", page, "1", "open", "m000009")
	c.ask("EXEC")
	if n := e.client.ZCard(t.Context(), "open").Val(); n != 10 {
		t.Errorf("the board has %d members", n)
	}

	old := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--rename-command", "EVAL_RO", ""}}).Addr()).learned()
	old.fill(10, falling)
	old.dial().want(refusal, "EVAL", page, "1", "open", "m000009")
}

func sha(script string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(script))) }

// TestOwnKeys: no sorted set is made where keys of rankcache itself are; what else is done to them,
// such as adding boards to a room, is passed on.
func TestOwnKeys(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	c := e.dial()
	for _, write := range []string{"ZADD rankcache:rooms 1 a", "zincrby rankcache:ends 1 a", "ZUNIONSTORE rankcache:readopt 1 x", "ZADD rankcache:room:88:boards 1 a"} {
		c.want(ownRefusal, strings.Fields(write)...)
	}
	c.want(":1\r\n", words("SADD rankcache:room:88:boards 1_2_3")...)
	c.want(":0\r\n", words("ZCARD rankcache:ends")...)
	c.want(":1\r\n", words("ZADD x 1 rankcache:ends")...)
	if keys := e.client.Keys(t.Context(), "rankcache:*").Val(); len(keys) != 1 {
		t.Errorf("keys %v", keys)
	}
}

func TestTransactions(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	c := e.dial()
	c.want("+OK\r\n", "WATCH", "k")
	c.want(":10\r\n", "ZCARD", "open")
	c.want("+OK\r\n", "MULTI")
	c.want("+QUEUED\r\n", "ZCARD", "open")
	e.client.Set(t.Context(), "k", "1", 0)
	c.want("*-1\r\n", "EXEC")
	e.wantCounted(zCard, sourceLocal, 0)
	e.publishLater()
	c.want(":10\r\n", "ZCARD", "open")
	c.want("+OK\r\n", "WATCH", "k")
	c.want("+OK\r\n", "UNWATCH")
	c.want(":10\r\n", "ZCARD", "open")
	e.wantCounted(zCard, sourceLocal, 2)
}

// publishLater makes the copies current after all writes.
func (e *env) publishLater() {
	e.hot.At = time.Now()
	e.publish(time.Now())
}

// TestErrorOfALongLine: the client that goes on sending gets the error and the end of the connection, not a reset that takes the error away.
func TestErrorOfALongLine(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	for _, begin := range []string{"PING ", "*1", "*1\r\n$1"} {
		c := e.dial()
		c.send(begin + strings.Repeat("1", 4<<20))
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if got, err := io.ReadAll(c); !strings.HasPrefix(string(got), "-ERR Protocol error: too big") || err != nil {
			t.Errorf("%q: %q, %v", begin, got, err)
		}
	}
}

// TestRelayed: subscriptions and other replies that can't be counted pass as they are.
func TestRelayed(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	for _, proto := range []string{"2", "3"} {
		sign := map[string]string{"2": "*", "3": ">"}[proto]
		c := e.dial()
		c.ask("HELLO", proto)
		c.send("ZCARD open\r\nSUBSCRIBE a b\r\n")
		want := ":10\r\n" + sign + "3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n" + sign + "3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"
		got := make([]byte, len(want))
		c.readFull(got)
		if string(got) != want {
			t.Errorf("%q, want %q", got, want)
		}
		e.client.Publish(t.Context(), "b", "hello")
		want = sign + "3\r\n$7\r\nmessage\r\n$1\r\nb\r\n$5\r\nhello\r\n"
		got = make([]byte, len(want))
		c.readFull(got)
		if string(got) != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	c := e.dial()
	c.send("CLIENT REPLY SKIP\r\nSET x 1\r\nZCARD open\r\n")
	if got := c.replies(1); got != ":10\r\n" {
		t.Errorf("after CLIENT REPLY SKIP: %q", got)
	}
	c = e.dial()
	c.want("+OK\r\n", "SELECT", "3")
	c.want(":0\r\n", "ZCARD", "open")
}

// TestTracking: pushes between replies are passed on and are no replies.
func TestTracking(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	c := e.dial()
	c.ask("HELLO", "3")
	c.want("+OK\r\n", "CLIENT", "TRACKING", "ON")
	c.want("_\r\n", "GET", "k")
	e.client.Set(t.Context(), "k", "1", 0)
	want := ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"
	got := make([]byte, len(want))
	if c.readFull(got); string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestBlocking: what stands behind a blocking command waits, and a client that has gone
// takes nothing.
func TestBlocking(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	blocked := func(n int) {
		t.Helper()
		testkit.Eventually(t, 5*time.Second, func() error {
			if info := e.client.Info(t.Context(), "clients").Val(); !strings.Contains(info, fmt.Sprintf("blocked_clients:%d\r", n)) {
				return fmt.Errorf("want %d blocked clients: %s", n, info)
			}
			return nil
		})
	}
	c := e.dial()
	c.send("BLPOP list 0\r\nZCARD open\r\n")
	blocked(1)
	c.send("ZSCORE open " + fixture.Member(9) + "\r\nGET k\r\n")
	e.client.RPush(t.Context(), "list", "a")
	if got, want := c.replies(4), "*2\r\n$4\r\nlist\r\n$1\r\na\r\n:10\r\n$3\r\n991\r\n$-1\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.send("BLPOP list 0\r\n")
	blocked(1)
	c.send("GET k\r\nZCARD open\r\n") // alone behind it
	time.Sleep(20 * time.Millisecond)
	e.client.RPush(t.Context(), "list", "a")
	if got, want := c.replies(3), "*2\r\n$4\r\nlist\r\n$1\r\na\r\n$-1\r\n:10\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.send("BLPOP list 0\r\n")
	blocked(1)
	_ = c.Close()
	blocked(0)
	e.client.RPush(t.Context(), "list", "b")
	if n := e.client.LLen(t.Context(), "list").Val(); n != 1 {
		t.Error("a client that has gone took from the list")
	}
}

func TestSlowReplies(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	c := e.dial()
	// EVAL is not flagged as blocking; it takes longer than replies are awaited at first.
	c.send("EVAL \"local t = redis.call('time')[1] while redis.call('time')[1] - t < 2 do end return 1\" 0\r\nPING\r\n")
	c.send("ZCARD open\r\n")
	if got, want := c.replies(3), ":1\r\n+PONG\r\n:10\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWithoutRedis(t *testing.T) {
	r := testkit.StartRedis(t, servers.RedisOptions{})
	e := newEnv(t, r.Addr()).learned()
	e.fill(10, falling)
	c, idle := e.dial(), e.dial()
	idle.want("$-1\r\n", "GET", "k")
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * idleUnchecked)
	away := awayReply(errAway)
	for _, c := range []*clientConn{c, idle} {
		c.want(":10\r\n", "ZCARD", "open")
		c.want(away, "GET", "k")
		c.want(away, "MULTI")
		c.want(":10\r\n", "ZCARD", "open")
		c.send("MULTI\r\nSET a 1\r\nEXEC\r\nSET open 1\r\n")
		if got, want := c.replies(4), away+away+away+away; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		c.want(":10\r\n", "ZCARD", "open") // as nothing was written
	}
	if err := r.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		if got := c.ask("GET", "k"); got != "$-1\r\n" {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	idle.want("$-1\r\n", "GET", "k")
	e.learned()
}

// TestRedisDiesDuringACommand: whether it was executed is unknown, and the reply claims nothing
// else.
func TestRedisDiesDuringACommand(t *testing.T) {
	r := testkit.StartRedis(t, servers.RedisOptions{})
	e := newEnv(t, r.Addr()).learned()
	c := e.dial()
	c.want("+OK\r\n", "SET", "k", "v")
	c.send("GET k\r\nBLPOP list 0\r\nPING\r\n")
	if got := c.replies(1); got != "$1\r\nv\r\n" {
		t.Errorf("%q", got)
	}
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	if rest := c.rest(); rest != "" {
		t.Errorf("%q instead of the end of the connection", rest)
	}
}

func TestBlockedBoard(t *testing.T) {
	e := newEnv(t, testkit.Redis(t)).learned()
	c := e.dial()
	c.want("-ERR RANKCACHE board is blocked by the operator\r\n", "ZCARD", "shut")
	e.wantCounted(zCard, sourceRefused, 1)
}

// TestBypassedBoard: Redis answers, and a board that is kept here is still not written to.
func TestBypassedBoard(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	c := e.dial()
	c.want(":10\r\n", "ZCARD", "open")
	tiers := e.tiers.Load()
	e.tiers.Store(tiers.Bypassing([]rooms.Bypass{{All: true}}))
	if err := e.client.Del(t.Context(), "open", "hot").Err(); err != nil { // so that only a copy has members
		t.Fatal(err)
	}
	for _, key := range []string{"open", "hot"} {
		c.want("*0\r\n", "ZREVRANGE", key, "0", "0")
	}
	c.want(refusal, "ZADD", "open", "1", "a")
	c.send("ZCARD open\r\nZCARD open\r\n")
	if got := c.replies(2); got != ":0\r\n:0\r\n" {
		t.Errorf("in a pipeline: %q", got)
	}
	e.tiers.Store(tiers)
	e.publishLater() // the refused write may have made the connection wait for later copies
	c.want(":10\r\n", "ZCARD", "open")
}

func TestMaxAge(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr(), func(c *Config) { c.MaxAge = time.Minute }).learned()
	e.fill(10, falling)
	c := e.dial()
	c.want(":10\r\n", "ZCARD", "open")
	e.wantCounted(zCard, sourceLocal, 1)
	old := newEnv(t, e.redis, func(c *Config) { c.MaxAge = time.Nanosecond }).learned()
	old.open = e.open
	old.boards.Store(rankcache.BoardID("open"), e.open)
	old.dial().want(":10\r\n", "ZCARD", "open")
	old.wantCounted(zCard, sourceLocal, 0)
	old.wantCounted(zCard, sourcePassed, 1)
}

// TestReadsAreCounted: reads over RESP make boards hot, whatever answers them.
func TestReadsAreCounted(t *testing.T) {
	e := newEnv(t, testkit.Redis(t)).learned()
	c := e.dial()
	for range 3 {
		c.ask("ZREVRANGE", "none", "0", "9")
	}
	c.ask("ZCARD", "absent")
	c.ask("GET", "other")
	if n := e.hot.Reads.Load(); n != 4 {
		t.Errorf("%d reads were counted, want 4", n)
	}
}

// TestMetrics: commands are counted by name and by what answered them.
func TestMetrics(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	c := e.dial()
	for _, command := range []string{"PING", "PING", "ZCARD open", "ZREVRANGE hot 0 1", "ZREVRANGE hot 0 1", "ZCARD hot", "ZSCORE shut a", "GET k", "EVAL return{} 0", "ZADD open 1 a"} {
		c.ask(strings.Fields(command)...)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(e.counts)
	want := "# HELP rankcache_resp_commands_total " + countsHelp + `
# TYPE rankcache_resp_commands_total counter
rankcache_resp_commands_total{command="other",source="redis"} 1
rankcache_resp_commands_total{command="other",source="refused"} 1
rankcache_resp_commands_total{command="ping",source="here"} 2
rankcache_resp_commands_total{command="script",source="redis"} 1
rankcache_resp_commands_total{command="zcard",source="local"} 1
rankcache_resp_commands_total{command="zcard",source="redis"} 1
rankcache_resp_commands_total{command="zrevrange",source="hot"} 2
rankcache_resp_commands_total{command="zscore",source="refused"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if s := e.Status(); s.Connections != 1 || s.Upstreams != 1 || !strings.HasPrefix(s.Server, "redis ") || !s.Reached {
		t.Errorf("%+v", s)
	}
}

func TestHTTPEnds(t *testing.T) {
	e := newEnv(t, testkit.Redis(t)).learned()
	for _, line := range []string{"GET / HTTP/1.1\r\n", "POST /v1 HTTP/1.1\r\n", "Host: a\r\n"} {
		c := e.dial()
		c.send(line + "PING\r\n")
		if rest := c.rest(); rest != "" {
			t.Errorf("%q is answered %q", line, rest)
		}
	}
}

func TestMalformedFrameEnds(t *testing.T) {
	e := newEnv(t, testkit.Redis(t)).learned()
	for _, in := range []string{"PING\r\nGET k\r\n*1\r\n:x\r\nPING\r\n", "*1\r\n$-5\r\n", "SET \"a\r\n"} {
		here, there := e.dial(), dial(t, e.redis)
		here.send(in)
		there.send(in)
		if got, want := here.rest(), there.rest(); got != want || got == "" {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestUnfitKeys: a key that can be no board's is told of once, and each of its reads is counted.
func TestUnfitKeys(t *testing.T) {
	e := newEnv(t, testkit.Redis(t)).learned()
	c := e.dial()
	for range 3 {
		c.ask("ZREVRANGE", "week [1]", "0", "9")
		c.ask("ZREVRANGE", "week/{eu}", "0", "9")
	}
	c.ask("GET", "a b")
	if n := testutil.ToFloat64(e.unfit.reads); n != 3 || len(e.unfit.told) != 1 || !e.unfit.told["week [1]"] {
		t.Errorf("%v reads of %v", n, e.unfit.told)
	}
}

// TestHotRanks: the rank and score of a member on the kept page of a hot board are the page's, as the rows are.
func TestHotRanks(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(10, falling)
	if err := e.client.ZIncrBy(t.Context(), "hot", 5000, fixture.Member(7)).Err(); err != nil { // past the sidecar
		t.Fatal(err)
	}
	e.hot.Set(e.top(3))
	c := e.dial()
	c.send(string(appendCommand(appendCommand(appendCommand(nil, words("ZREVRANGE hot 0 0")...), words("ZREVRANK hot %s", fixture.Member(0))...), words("ZSCORE hot %s", fixture.Member(0))...)))
	if got, want := c.replies(3), "*1\r\n$7\r\nm000000\r\n:0\r\n$4\r\n1000\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e.wantCounted(zRevRank, sourceHot, 1)
	c.want(":6\r\n", words("ZREVRANK hot %s", fixture.Member(5))...)
	e.wantCounted(zRevRank, sourcePassed, 1)
}

// TestPipelineAgrees: rows of a hot board, and what Redis answers in the same pipeline of a member that was not on the
// page, are of one page, whatever stands between them.
func TestPipelineAgrees(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	renewed := 0
	written := func(b rankcache.BoardID) <-chan struct{} {
		renewed++
		rows := e.client.ZRevRangeWithScores(t.Context(), string(b), 0, 2).Val()
		top := &rankcache.Top{Board: b, Members: 10, PublishedAt: time.Now()}
		for _, z := range rows {
			top.Entries = append(top.Entries, rankcache.Entry{Member: z.Member.(string), Score: z.Score})
		}
		e.hot.Set(top)
		read := make(chan struct{})
		close(read)
		return read
	}
	var err error
	e.reader, err = sidecar.NewReader(sidecar.Config{Tiers: e.tiers.Load, Hot: e.hot, Origin: envOrigin{fixture.NewOrigin(0, 1), e}, Written: written}, nil)
	if err != nil {
		t.Fatal(err)
	}
	me := fixture.Member(7)
	for _, own := range []string{"ZREVRANK hot %s", "ZRANK hot %s", "ZSCORE hot %s", "ZMSCORE hot %s"} {
		for _, pipeline := range []string{
			"ZREVRANGE hot 0 2|own", "own|ZREVRANGE hot 0 2", "ZREVRANGE hot 0 2|HGETALL h|own|PING|GET k", "ZREVRANGE hot 0 2|INCR n|own",
			"own|LRANGE l 0 -1|ZRANGE hot 0 2 REV", "ZREVRANGE hot 0 2|ZREVRANK hot m000009|own|ZREVRANGE hot 0 1",
		} {
			e.fill(10, falling)
			e.hot.Set(e.top(3))
			e.client.Del(t.Context(), "l")
			e.client.RPush(t.Context(), "l", "a", "b")
			if err := e.client.ZIncrBy(t.Context(), "hot", 5000, me).Err(); err != nil { // past the sidecar
				t.Fatal(err)
			}
			lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(pipeline, "own", own), "%s", me), "|")
			var all []byte
			for _, line := range lines {
				all = appendCommand(all, words("%s", line)...)
			}
			var got [2]string
			for i, c := range []*clientConn{e.dial(), dial(t, e.redis)} {
				e.client.Del(t.Context(), "n")
				c.send(string(all))
				got[i] = c.replies(len(lines))
			}
			if got[0] != got[1] {
				t.Errorf("%s: %q, Redis %q", lines, got[0], got[1])
			}
		}
	}
	e.fill(10, falling)
	e.hot.Set(e.top(3))
	renewed = 0
	c := e.dial()
	if c.send(string(appendCommand(appendCommand(nil, words("ZREVRANGE hot 0 1")...), words("ZREVRANK hot m000008")...))); c.replies(2) == "" || renewed > 0 {
		t.Errorf("the page was read %d times for a member that is behind it", renewed)
	}
}

// TestWrittenBoards: a board that was written through a connection is told of, in a transaction at EXEC.
func TestWrittenBoards(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	var mu sync.Mutex
	var written []rankcache.BoardID
	told := func(want ...rankcache.BoardID) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(written, want) {
			t.Errorf("%v were written, want %v", written, want)
		}
		written = nil
	}
	var err error
	e.reader, err = sidecar.NewReader(sidecar.Config{Tiers: e.tiers.Load, Hot: e.hot, Origin: envOrigin{fixture.NewOrigin(0, 1), e}, Written: func(b rankcache.BoardID) <-chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		written = append(written, rankcache.BoardID(strings.Clone(string(b))))
		return nil
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := e.dial()
	c.ask("ZADD", "hot", "1", "a:b")
	told("hot", "1", "a:b")
	c.ask("ZRANGE", "hot", "0", "1", "REV")
	told()
	c.want("+OK\r\n", "MULTI")
	c.want("+QUEUED\r\n", "ZADD", "hot", "1", "x y")
	told()
	c.want("*1\r\n:1\r\n", "EXEC")
	told("hot", "1")
}
