package wire

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"rankcache"
)

// The values were computed by redis-server 7.0.15, as the comment of Hash tells.
func TestHashIsThatOfRedis(t *testing.T) {
	for _, c := range []struct {
		member string
		score  float64
		want   uint64
	}{
		{"u1", 42, 209889382451362},
		{"u1", 0, 272403281069336},
		{"u1", math.Copysign(0, -1), 272403281069336},
		{"你", -2.5, 258906050224749},
		{strings.Repeat("m", 128), 1e300, 206687418469164},
	} {
		if got := Hash(c.member, c.score); got != c.want {
			t.Errorf("%s %v: got %d, want %d", c.member, c.score, got, c.want)
		}
	}
}

func TestHashAllocatesNothing(t *testing.T) {
	member := strings.Repeat("m", rankcache.MaxMemberLen)
	if n := testing.AllocsPerRun(100, func() { Hash(member, 42) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMetaIsReadAsItIsWritten(t *testing.T) {
	for _, want := range []Meta{
		{Life: LifeClosed, State: rankcache.State{Run: 1838429319476737, Seq: 917, Sum: 0x0a1b2c3d4e5f, HasSum: true}, Members: 5000,
			End: 1700000000123, Expires: 1700000000999, Now: 1700000000124, Turn: 456123, OrderLife: 3600, Buckets: 4},
		{Adopting: true, State: rankcache.State{Run: 5}, Buckets: 1},
		{Primed: true, Life: LifeFinal, State: rankcache.State{Run: 5, Sum: 1, HasSum: true}, Buckets: 1},
		{State: rankcache.State{Run: 5}, Buckets: 1, Era: "0123456789abcdef", Seen: Seen{Topic: 1 << 60, Partition: 7, From: 1 << 40, Next: 1<<40 + 1}},
	} {
		data := AppendMeta(nil, &want)
		if got, err := ParseMeta(string(data)); err != nil || got != want {
			t.Errorf("got %+v, %v of %d bytes, want %+v", got, err, len(data), want)
		}
	}
}

func TestMetaOfAnotherVersionIsRefused(t *testing.T) {
	data, durable := string(AppendMeta(nil, &Meta{Buckets: 4})), string(AppendMeta(nil, &Meta{Buckets: 4, Era: "0123456789abcdef"}))
	for _, bad := range []string{"", "917", data[:len(data)-1], data + "\x00", "\x02" + data[1:], "\x01" + durable[1:], "\x03" + durable[1:], durable[:len(durable)-1], durable + "\x00", data[:1] + "\x0f" + data[2:], data[:len(data)-2] + "\x00\x00"} {
		if got, err := ParseMeta(bad); !errors.Is(err, ErrMeta) {
			t.Errorf("%q: got %+v, %v", bad, got, err)
		}
	}
}

func FuzzParseMeta(f *testing.F) {
	f.Add(string(AppendMeta(nil, &Meta{Buckets: 4, State: rankcache.State{Run: 1, Seq: 2, Sum: 3, HasSum: true}})))
	f.Add(string(AppendMeta(nil, &Meta{Buckets: 4, State: rankcache.State{Run: 1, Seq: 2}, Era: "0123456789abcdef", Seen: Seen{Next: 9}})))
	f.Fuzz(func(t *testing.T, value string) {
		m, err := ParseMeta(value)
		if err != nil {
			return
		}
		if again, err := ParseMeta(string(AppendMeta(nil, &m))); err != nil || again != m {
			t.Errorf("got %+v, %v, want %+v", again, err, m)
		}
	})
}

func TestOrdersAreSpreadOverTheBuckets(t *testing.T) {
	var n [4]int
	for i := range 4000 {
		n[OrderBucket(fmt.Sprintf("gift-%d", i), 4)]++
	}
	for _, count := range n {
		if count < 750 || count > 1250 {
			t.Errorf("4000 orders over 4 buckets: %v", n)
		}
	}
}
