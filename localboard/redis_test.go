package localboard

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// TestBoardIsRedis: a board and a Redis sorted set with the same members have the same
// order, down to the bits of the scores.
func TestBoardIsRedis(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: testkit.Redis(t)})
	t.Cleanup(func() { _ = rdb.Close() })
	for name, id := range map[string]func(*rand.Rand) string{
		"numbers":         func(r *rand.Rand) string { return fmt.Sprint(r.IntN(1e9)) },
		"shared prefixes": func(r *rand.Rand) string { return "user:10000"[:r.IntN(11)] + strings.Repeat("0", r.IntN(20)) },
		"any bytes": func(r *rand.Rand) string {
			return string([]byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.IntN(2)), 0}[:r.IntN(5)])
		},
	} {
		for kind, score := range map[string]func(*rand.Rand) float64{"small scores": smallScores, "any score": anyScore} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				key := testkit.Name(t)
				t.Cleanup(func() { rdb.Del(t.Context(), key) })
				b := newBoard(t)
				fillBoth(t, rdb, key, b, id, score)
				compareRedis(t, rdb, key, b)
			})
		}
	}
}

// fillBoth sets members, some again and some to be removed, publishing between.
func fillBoth(t *testing.T, rdb *redis.Client, key string, b *Board, id func(*rand.Rand) string, score func(*rand.Rand) float64) {
	t.Helper()
	r, seq := rand.New(rand.NewPCG(1, 2)), uint64(0)
	for range 20 {
		pipe, us := rdb.Pipeline(), []wire.Update{}
		for range 200 {
			seq++
			u := set(id(r), score(r), seq)
			if r.IntN(10) == 0 {
				u = del(u.Member, seq)
				pipe.ZRem(t.Context(), key, u.Member)
			} else {
				pipe.ZAdd(t.Context(), key, redis.Z{Score: u.Score, Member: u.Member})
			}
			us = append(us, u)
		}
		b.Apply(us)
		b.Publish()
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func compareRedis(t *testing.T, rdb *redis.Client, key string, b *Board) {
	t.Helper()
	desc, err := rdb.ZRevRangeWithScores(t.Context(), key, 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	asc, err := rdb.ZRangeWithScores(t.Context(), key, 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	for direction, zs := range map[rankcache.Direction][]redis.Z{rankcache.Descending: desc, rankcache.Ascending: asc} {
		if diff := gocmp.Diff(exact(fromRedis(zs)), exact(whole(b, direction))); diff != "" {
			t.Fatalf("%s (-redis +board):\n%s", direction, diff)
		}
	}
	compareStandings(t, b, fromRedis(desc))
	for i := 0; i < len(desc); i += 97 {
		member := desc[i].Member.(string)
		want, err := rdb.ZRevRank(t.Context(), key, member).Result()
		got, _ := standings(b, []string{member}, rankcache.Descending)
		if err != nil || got[0].Rank != int(want)+1 {
			t.Errorf("rank of %q is %d, ZREVRANK gives %d, %v", member, got[0].Rank, want, err)
		}
	}
}

func fromRedis(zs []redis.Z) []rankcache.Entry {
	es := make([]rankcache.Entry, len(zs))
	for i, z := range zs {
		es[i] = rankcache.Entry{Member: z.Member.(string), Score: z.Score + 0} // Redis keeps a -0
	}
	return es
}

// exact makes entries comparable to the bit: 0 and -0 differ.
func exact(es []rankcache.Entry) []string {
	return slices.Collect(func(yield func(string) bool) {
		for _, e := range es {
			if !yield(fmt.Sprintf("%q %x", e.Member, math.Float64bits(e.Score))) {
				return
			}
		}
	})
}
