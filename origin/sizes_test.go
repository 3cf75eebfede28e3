package origin

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// sizesOf walks all of Redis and returns the sorted sets by key.
func sizesOf(t *testing.T, o *Origin) (sizes map[string]Size, pages int) {
	t.Helper()
	sizes = make(map[string]Size)
	must(t, o.Sizes(t.Context(), func(page []Size) error {
		pages++
		for _, s := range page {
			sizes[s.Key] = s
		}
		return nil
	}))
	return sizes, pages
}

// manySets has Redis keep sorted sets of 1, 2, 3 … members, and keys that are none.
func manySets(t *testing.T, client redis.UniversalClient, n int) {
	t.Helper()
	_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range n {
			for m := range i%5 + 1 {
				p.ZAdd(t.Context(), fmt.Sprint("set ", i), redis.Z{Member: m})
			}
			p.Set(t.Context(), fmt.Sprint("string-", i), "x", 0)
			p.HSet(t.Context(), fmt.Sprint("hash-", i), "f", "v")
		}
		return nil
	})
	must(t, err)
}

// testSizes: the walk sees every sorted set, and which of them are boards.
func testSizes(t *testing.T, client redis.UniversalClient) {
	const sets = 700
	names := wire.DefaultNames()
	b := board{New(client, names, WithTimeout(testTimeout)), client, "1_2_3"}
	b.fill(t, 7, abc...)
	foreign := board{b.Origin, client, "4_5_6"}
	must(t, client.ZAdd(t.Context(), "4_5_6", redis.Z{Member: "m"}).Err())
	must(t, client.Set(t.Context(), names.MetaKey("4_5_6"), "not a meta", 0).Err())
	must(t, client.ZAdd(t.Context(), "7_8_9", redis.Z{Member: "m"}).Err())
	must(t, client.HSet(t.Context(), names.MetaKey("7_8_9"), "f", "v").Err())
	manySets(t, client, sets)

	sizes, pages := sizesOf(t, b.Origin)
	if len(sizes) != sets+3 || pages < 3*sets/SizesPage {
		t.Errorf("%d sorted sets on %d pages", len(sizes), pages)
	}
	for i := range sets {
		if s := sizes[fmt.Sprint("set ", i)]; s.Members != i%5+1 || s.Meta != nil || s.Board != "" {
			t.Fatalf("set %d is %+v", i, s)
		}
	}
	if s := sizes["1_2_3"]; s.Members != len(abc) || s.Board != b.id || s.Meta == nil || s.Meta.Seq != 7 {
		t.Errorf("the board is %+v", s)
	}
	for _, key := range []string{"4_5_6", "7_8_9"} {
		if s := sizes[key]; s.Members != 1 || s.Meta != nil || s.Board != "" {
			t.Errorf("%s with a bad meta is %+v", foreign.id, s)
		}
	}
	stop, calls := errors.New("stop"), 0
	err := b.Sizes(t.Context(), func([]Size) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("stopped after %d pages: %v", calls, err)
	}
}

func TestSizes(t *testing.T) {
	client, err := Dial(Options{URL: "redis://" + testkit.StartRedis(t, servers.RedisOptions{}).Addr(), Timeout: testTimeout})
	must(t, err)
	t.Cleanup(func() { client.Close() })
	testSizes(t, client)
}

func TestSizesInCluster(t *testing.T) {
	testkit.FullOnly(t, "a cluster of its own")
	client, err := Dial(Options{Mode: ModeCluster, URL: "redis://" + startCluster(t, false).masters[0].Addr(), Timeout: testTimeout})
	must(t, err)
	t.Cleanup(func() { client.Close() })
	testSizes(t, client)
}

func TestMeasure(t *testing.T) {
	b := newBoard(t)
	var rows []rankcache.Entry
	for i := range 2000 {
		rows = append(rows, rankcache.Entry{Member: fmt.Sprint("member-", i), Score: float64(i)})
	}
	b.fill(t, len(rows), rows...)
	must(t, b.client.PExpire(t.Context(), string(b.id), time.Hour).Err())
	meta, _, err := b.Meta(t.Context(), b.id)
	must(t, err)
	meta.Buckets = 130 // in several round trips
	for _, bucket := range []int{0, 77, 129} {
		for set := range 2 {
			must(t, b.client.HSet(t.Context(), b.names().OrdersKey(b.id, set, bucket), "", "", "a", "1", "b", "2", "c", "3").Err())
		}
	}
	trips := 0
	between := func() error { trips++; return nil }
	s := Size{Key: string(b.id), Board: b.id, Meta: &meta}
	found, err := b.Measure(t.Context(), &s, between)
	must(t, err)
	if left := time.Until(s.Expires); !found || left <= 0 || left > time.Hour {
		t.Errorf("found %t, expires %v", found, s.Expires)
	}
	// A member takes at least its id, a score and some pointers.
	if least := int64(len(rows) * 30); s.Bytes < least || s.Bytes > 20*least {
		t.Errorf("%d members take %d bytes", len(rows), s.Bytes)
	}
	if s.Orders != 18 || s.OrdersBytes < 6*20 || trips != 3 {
		t.Errorf("%d order ids take %d bytes, %d round trips", s.Orders, s.OrdersBytes, trips)
	}
	stop := errors.New("stop")
	if _, err := b.Measure(t.Context(), &s, func() error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}

	other := Size{Key: string(b.id)}
	must(t, b.client.Persist(t.Context(), string(b.id)).Err())
	if found, err = b.Measure(t.Context(), &other, between); !found || err != nil || other.Bytes == 0 || !other.Expires.IsZero() || trips != 3 {
		t.Errorf("no board: found %t, %v, %+v", found, err, other)
	}
	other.Key = "gone-" + string(b.id)
	if found, err = b.Measure(t.Context(), &other, between); found || err != nil {
		t.Errorf("a key that is gone: found %t, %v", found, err)
	}
}

// A user without MEMORY gets everything else.
func TestMeasureWithoutMemoryUsage(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	client, err := Dial(Options{URL: "redis://" + server.Addr(), Timeout: testTimeout})
	must(t, err)
	t.Cleanup(func() { client.Close() })
	b := board{New(client, wire.DefaultNames(), WithTimeout(testTimeout)), client, "1_2_3"}
	b.fill(t, 1, abc...)
	must(t, client.HSet(t.Context(), b.names().OrdersKey(b.id, 0, 0), "", "", "a", "1").Err())
	must(t, client.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@all", "-memory").Err())
	reader, err := Dial(Options{URL: "redis://reader:secret@" + server.Addr(), Timeout: testTimeout})
	must(t, err)
	t.Cleanup(func() { reader.Close() })
	o := New(reader, b.names(), WithTimeout(testTimeout))
	sizes, _ := sizesOf(t, o)
	s := sizes["1_2_3"]
	found, err := o.Measure(t.Context(), &s, func() error { return nil })
	if !found || err != nil || s.Bytes != 0 || s.OrdersBytes != 0 || s.Orders != 1 {
		t.Errorf("found %t, %v, %+v", found, err, s)
	}
}
