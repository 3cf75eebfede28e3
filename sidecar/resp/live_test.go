package resp

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
)

// TestAnswersAreOfOneMoment: while the board is published again and again, in states of
// which all scores tell which one it is, no answer has two of them, and a connection
// never steps back.
func TestAnswersAreOfOneMoment(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	const members = 700
	state := func(n int) {
		var es []rankcache.Entry
		for i := range members + n%7 {
			es = append(es, rankcache.Entry{Member: fixture.Member(i), Score: float64(n*1000 + i)})
		}
		if err := e.open.Load(uint64(n), es); err != nil {
			t.Error(err)
		}
		e.publish(time.Now())
	}
	state(1)
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for n := 2; ; n++ {
			select {
			case <-stop:
				return
			default:
				state(n)
			}
		}
	})
	client := redis.NewClient(&redis.Options{Addr: e.addr})
	t.Cleanup(func() { _ = client.Close() })
	conn := client.Conn()
	defer conn.Close()
	ctx, last := t.Context(), 0
	for i := range 1000 {
		var zs []redis.Z
		var err error
		switch i % 4 {
		case 0:
			zs, err = conn.ZRevRangeWithScores(ctx, "open", 0, 49).Result()
		case 1:
			zs, err = conn.ZRangeWithScores(ctx, "open", -5, -1).Result()
		case 2:
			zs, err = conn.ZRangeByScoreWithScores(ctx, "open", &redis.ZRangeBy{Min: "0", Max: "+inf", Offset: 10, Count: 600}).Result()
		case 3:
			zs, err = conn.ZRangeWithScores(ctx, "open", 0, -1).Result()
		}
		if err != nil || len(zs) == 0 {
			t.Fatal(len(zs), err)
		}
		n := int(zs[0].Score) / 1000
		if i%4 == 3 && len(zs) != members+n%7 {
			t.Fatalf("all of state %d are %d members, want %d", n, len(zs), members+n%7)
		}
		for _, z := range zs {
			if int(z.Score)/1000 != n {
				t.Fatalf("read %d has rows of the states %d and %d", i, n, int(z.Score)/1000)
			}
		}
		if n < last {
			t.Fatalf("state %d after %d", n, last)
		}
		last = n
	}
	close(stop)
	all.Wait()
	if last < 3 || e.counted(zRange, sourcePassed) > 0 {
		t.Errorf("%d states; %d reads were passed on", last, e.counted(zRange, sourcePassed))
	}
}

// TestRepliesComeInOrder: many connections send pipelines of local and passed commands whose
// replies tell which command they are of.
func TestRepliesComeInOrder(t *testing.T) {
	e := newEnv(t, testkit.StartRedis(t, servers.RedisOptions{}).Addr()).learned()
	e.fill(300, func(i int) float64 { return float64(i) })
	var all sync.WaitGroup
	for worker := range 8 {
		c := e.dial()
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 7))
			in := bufio.NewReader(c)
			for range 200 {
				var out []byte
				var want []string
				for range 1 + r.IntN(40) {
					i := r.IntN(300)
					if text := strconv.Itoa(i); r.IntN(2) == 0 {
						out = appendCommand(out, "ZSCORE", "open", fixture.Member(i))
						want = append(want, text)
					} else {
						out = appendCommand(out, "EVAL_RO", "return ARGV[1]", "0", text+"x")
						want = append(want, text+"x")
					}
				}
				if _, err := c.Write(out); err != nil {
					t.Error(err)
					return
				}
				for _, w := range want {
					_, _ = in.ReadString('\n')
					if got, err := in.ReadString('\n'); err != nil || got != w+"\r\n" {
						t.Errorf("got %q, want %q (%v)", got, w, err)
						return
					}
				}
			}
		})
	}
	all.Wait()
}

// TestRedisDiesUnderPipelines: what a client reads until its connection ends are the first
// replies, whole and in order.
func TestRedisDiesUnderPipelines(t *testing.T) {
	r := testkit.StartRedis(t, servers.RedisOptions{})
	e := newEnv(t, r.Addr()).learned()
	e.fill(300, func(i int) float64 { return float64(i) })
	var all sync.WaitGroup
	for range 8 {
		c := e.dial()
		all.Go(func() {
			in := bufio.NewReader(c)
			for n := 0; ; n++ {
				var out []byte
				for i := range 20 {
					out = appendCommand(out, "ZSCORE", "open", fixture.Member(i))
					out = appendCommand(out, "EVAL_RO", "return ARGV[1]", "0", fmt.Sprint(n, "-", i))
				}
				if _, err := c.Write(out); err != nil {
					return
				}
				for i := range 20 {
					for _, want := range []string{strconv.Itoa(i), fmt.Sprint(n, "-", i)} {
						line, err := in.ReadString('\n')
						if err == nil && strings.HasPrefix(line, "-MASTERDOWN ") && want != strconv.Itoa(i) {
							return
						}
						text, err := in.ReadString('\n')
						if err != nil {
							return
						}
						if text != want+"\r\n" {
							t.Errorf("got %q %q, want %q", line, text, want)
							return
						}
					}
				}
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	if err := r.Kill(); err != nil {
		t.Error(err)
	}
	all.Wait()
}

// TestRedisDiesUnderSubscribers: their connections end, and nothing else does.
func TestRedisDiesUnderSubscribers(t *testing.T) {
	r := testkit.StartRedis(t, servers.RedisOptions{})
	e := newEnv(t, r.Addr()).learned()
	e.fill(10, falling)
	c, other := e.dial(), e.dial()
	c.ask("SUBSCRIBE", "news")
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	if rest := c.rest(); rest != "" {
		t.Errorf("%q instead of the end of the connection", rest)
	}
	other.want(":10\r\n", "ZCARD", "open")
}

// TestRedisHangs: open boards are answered while Redis does not answer, and what waits for it
// is answered in its order once it does.
func TestRedisHangs(t *testing.T) {
	r := testkit.StartRedis(t, servers.RedisOptions{})
	e := newEnv(t, r.Addr()).learned()
	e.fill(10, falling)
	waits, other := e.dial(), e.dial()
	waits.want("+OK\r\n", "SET", "k", "v")
	if err := r.Pause(); err != nil {
		t.Fatal(err)
	}
	waits.send("ZCARD open\r\nGET k\r\nZCARD open\r\n")
	if got := waits.replies(1); got != ":10\r\n" {
		t.Errorf("%q", got)
	}
	other.want(":10\r\n", "ZCARD", "open")
	if err := r.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := waits.replies(2); got != "$1\r\nv\r\n:10\r\n" {
		t.Errorf("%q", got)
	}
}
