package writer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// quiet returns a writer that changes scores and publishes nothing.
func quiet(t testing.TB, change func(*Options)) *fixture {
	t.Helper()
	return newFixture(t, "unused:1", func(o *Options) {
		o.Tiers = tiers{}
		if change != nil {
			change(o)
		}
	})
}

// opCommand is the JSON of a command with one number.
func (h *fixture) opCommand(op, orderID, member, field string, number float64) string {
	return fmt.Sprintf(`{"order":%q,"board":%q,"member":%q,"op":%q,%q:%s}`, orderID, h.board, member, op, field,
		strconv.FormatFloat(number, 'g', -1, 64))
}

// A repeat gets the first update again, byte for byte, whatever has happened since.
func TestRepeatIsTheSameUpdate(t *testing.T) {
	h := quiet(t, nil)
	for i, first := range []string{
		fmt.Sprintf(`{"order":"o0","board":%q,"member":"a","op":"incr","delta":0.1,"at":%d}`, h.board, h.at-5),
		fmt.Sprintf(`{"order":"o1","board":%q,"member":"b c é","op":"set","score":9e15,"at":%d}`, h.board, h.at-6),
		fmt.Sprintf(`{"order":"o2","board":%q,"member":"missing","op":"delete","at":%d}`, h.board, h.at-7),
	} {
		done := h.do1(t, first)
		equal(t, "duplicate", done.Duplicate, false)
		h.do1(t, h.opCommand("incr", fmt.Sprint("between", i), "b c é", "delta", 1)) // later changes do not matter
		must(t, h.client.ZAdd(t.Context(), string(h.board), redis.Z{Member: fmt.Sprint("foreign", i), Score: 1}).Err())
		h.do1(t, h.opCommand("incr", fmt.Sprint("adopting", i), "b c é", "delta", 1))
		for _, at := range []string{fmt.Sprint(h.at - 99), fmt.Sprint(h.at + 1), "7"} {
			again := h.do1(t, regexp.MustCompile(`"at":\d+`).ReplaceAllString(first, `"room":"77","at":`+at))
			equal(t, "duplicate", again.Duplicate, true)
			equal(t, "update", string(wire.AppendUpdate(nil, &again.Update)), string(wire.AppendUpdate(nil, &done.Update)))
		}
	}
}

// A known order id with another op, member or number is refused.
func TestOrderConflict(t *testing.T) {
	h := quiet(t, nil)
	h.do1(t, h.opCommand("incr", "o", "a", "delta", 1))
	before := h.meta(t)
	for _, other := range []string{h.opCommand("set", "o", "a", "score", 1), h.opCommand("incr", "o", "b", "delta", 1),
		h.opCommand("incr", "o", "a", "delta", 2), h.opCommand("delete", "o", "a", "score", 0)} {
		h.checkRefused(t, other, "order_conflict")
	}
	equal(t, "meta", h.meta(t), before)
}

func (h *fixture) checkRefused(t *testing.T, command, reason string) {
	t.Helper()
	_, err := h.do(t.Context(), []byte(command))
	if refusal := asRefusal(err); refusal == nil || refusal.Reason != reason || refusal.Err == nil {
		t.Errorf("%s: %v, want reason %s", command, err, reason)
	}
}

// Whole numbers that a double would round are refused, as scores and as what is added.
func TestScoreRange(t *testing.T) {
	h := quiet(t, nil)
	h.do1(t, h.opCommand("set", "o1", "a", "score", maxScore))
	h.do1(t, h.opCommand("set", "o2", "b", "score", -maxScore))
	for member, sign := range map[string]float64{"a": 1, "b": -1} {
		h.checkRefused(t, h.opCommand("incr", "o3", member, "delta", sign), "score_range")
		h.checkRefused(t, h.opCommand("incr", "o3", member, "delta", -sign*(maxScore+1)), "score_range")
		h.checkRefused(t, h.opCommand("set", "o3", member, "score", sign*(maxScore+1)), "score_range")
	}
	h.checkRefused(t, fmt.Sprintf(`{"order":"o3","board":%q,"member":"c","op":"incr","delta":9007199254740993}`, h.board), "score_range")
	equal(t, "seq", h.meta(t).Seq, uint64(2))
	equal(t, "score", h.client.ZScore(t.Context(), string(h.board), "a").Val(), float64(maxScore))
	equal(t, "then", h.do1(t, h.opCommand("incr", "o3", "a", "delta", -maxScore)).Update.Score, 0.0)
	must(t, h.client.ZAdd(t.Context(), string(h.board), redis.Z{Member: "b", Score: 1e300}).Err())
	h.checkRefused(t, h.opCommand("incr", "o4", "b", "delta", -1), "score_range")
	h.do1(t, h.opCommand("delete", "delete b", "b", "score", 0))
}

// A board with an infinite score, which no reader can be given, takes no command until that is
// mended by hand, whether it was there before its first command, came beside a new member, or
// a sidecar has found it.
func TestInfiniteScore(t *testing.T) {
	for _, score := range []float64{math.Inf(1), math.Inf(-1)} {
		for name, found := range map[string]func(*fixture){
			"at birth": func(*fixture) {},
			"adopted":  func(h *fixture) { h.client.Del(t.Context(), string(h.board)); h.do1(t, h.command("o0", "a")) },
			"large":    func(h *fixture) { h.applier.birth.addAtOnce = 0 },
			"by a sidecar": func(h *fixture) {
				h.client.Del(t.Context(), string(h.board))
				h.do1(t, h.command("o0", "in"))
				must(t, h.client.ZAdd(t.Context(), string(h.board), redis.Z{Member: "in", Score: score}).Err())
				err := readopter{h.applier.adopter}.readoptBoard(t.Context(), h.board, fmt.Sprint(h.meta(t).Run))
				equal(t, "readopted", asRefusal(err).Reason, "unreadable")
			},
		} {
			h := quiet(t, nil)
			must(t, h.client.ZAdd(t.Context(), string(h.board), redis.Z{Member: "in", Score: score}, redis.Z{Member: "b", Score: 5}).Err())
			found(h)
			must(t, h.client.ZAdd(t.Context(), string(h.board), redis.Z{Member: "in", Score: score}, redis.Z{Member: "b", Score: 5}).Err())
			_, err := h.do(t.Context(), []byte(h.command("o1", "b")))
			if r := asRefusal(err); r == nil || r.Reason != "unreadable" || !strings.Contains(r.Error(), string(h.board)) || !strings.Contains(r.Error(), `"in"`) {
				t.Errorf("%s, %v: %v", name, score, err)
			}
			must(t, h.client.ZAdd(t.Context(), string(h.board), redis.Z{Member: "in", Score: 7}).Err())
			equal(t, name+" mended", h.do1(t, h.command("o1", "b")).Update.Score, 6.0)
			h.checkSum(t)
		}
	}
}

// If a key of the board has another type, the command is refused and nothing
// changes: no seq is used.
func TestWrongTypes(t *testing.T) {
	names := wire.DefaultNames()
	for name, key := range map[string]func(rankcache.BoardID) string{
		"board": names.BoardKey, "meta": names.MetaKey,
		"orders": func(b rankcache.BoardID) string { return names.OrdersKey(b, 1, 2) },
	} {
		for _, op := range []string{"incr", "set", "delete"} {
			h := quiet(t, nil)
			must(t, h.client.Set(t.Context(), key(h.board), "no number", 0).Err())
			field := map[string]string{"incr": "delta", "set": "score", "delete": "score"}[op]
			_, err := h.do(t.Context(), []byte(h.opCommand(op, "o", "m", field, 1)))
			if refusal := asRefusal(err); refusal == nil || refusal.Reason != "type" {
				t.Errorf("%s, %s: %v", name, op, err)
			}
			keys, err := h.client.Keys(t.Context(), "*"+string(h.board)+"*").Result()
			must(t, err)
			equal(t, name+" "+op, keys, []string{key(h.board)})
		}
	}
}

// Doubles come back from Redis bit for bit, from small boards (a list) and from large
// ones (a hash), and increments equal Go's sums.
func TestDoublesRoundTrip(t *testing.T) {
	for _, members := range []int{1, 300} {
		h := quiet(t, nil)
		for i := range members {
			h.do1(t, h.opCommand("set", fmt.Sprint("fill", i), fmt.Sprint("f", i), "score", 1))
		}
		for i, f := range doubles(200) {
			set := h.do1(t, h.opCommand("set", fmt.Sprint("s", i), "m", "score", f))
			sameBits(t, "set", set.Update.Score, f+0)
			sameBits(t, "kept", h.client.ZScore(t.Context(), string(h.board), "m").Val(), f+0)
			delta := rand.NormFloat64() * max(1, math.Abs(f)/2)
			if math.Abs(f+delta) > maxScore || math.Abs(delta) > maxScore {
				continue
			}
			incr := h.do1(t, h.opCommand("incr", fmt.Sprint("i", i), "m", "delta", delta))
			sameBits(t, "delta", incr.Update.Delta, delta)
			sameBits(t, "sum", incr.Update.Score, f+delta+0)
		}
	}
}

func sameBits(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Float64bits(got) != math.Float64bits(want) {
		t.Errorf("%s: %x, want %x (%v)", what, got, want, want)
	}
}

func doubles(n int) []float64 {
	fs := []float64{0, math.Copysign(0, -1), maxScore, -maxScore, math.SmallestNonzeroFloat64,
		-math.SmallestNonzeroFloat64, 0x1p-1022, 1 << 52, 1<<52 + 2, 1e15, 1e15 + 0.1, 0.1, 1.0 / 3}
	for len(fs) < n {
		fs = append(fs, math.Ldexp(rand.Float64()*2-1, 53-rand.IntN(1100)))
	}
	return fs
}

// All keys are declared in KEYS and lie in the board's slot; a cluster rejects other
// scripts.
func TestClusterSlots(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{Cluster: true})
	node := redisClient(t, server.Addr())
	must(t, node.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err())
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}, Protocol: 2})
	t.Cleanup(func() { cluster.Close() })
	h := quiet(t, func(o *Options) { o.Redis, o.BoardLife = cluster, time.Hour })
	testkit.Eventually(t, testTimeout, func() error { return cluster.Set(t.Context(), "x", 1, 0).Err() })
	jobs := make([]*job, 200)
	for i := range jobs {
		jobs[i] = &job{Command: &Command{Board: rankcache.BoardID(fmt.Sprint("b", i%20)), Member: "m", Op: wire.OpIncr,
			Number: 1, OrderID: fmt.Sprint("o", i), At: h.at}}
	}
	must(t, h.applier.apply(t.Context(), jobs))
	for i, j := range jobs {
		equal(t, "seq", j.Update.Seq, uint64(i/20+1))
	}
}
