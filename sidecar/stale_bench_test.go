package sidecar

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/origin"
	"rankcache/wire"
)

// BenchmarkStale reads pages of 50 rows of small boards from a real Redis, in turns with and without --small-stale, and
// reports the median of what it costs more.
func BenchmarkStale(b *testing.B) {
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(b), Protocol: 2})
	defer client.Close()
	boards := make([]rankcache.BoardID, 200)
	for i := range boards {
		boards[i] = rankcache.BoardID(fmt.Sprint(testkit.Name(b), i))
		rows := make([]redis.Z, 60)
		for j := range rows {
			rows[j] = redis.Z{Score: float64(j), Member: fmt.Sprintf("member-%06d", j)}
		}
		if err := client.ZAdd(b.Context(), string(boards[i]), rows...).Err(); err != nil {
			b.Fatal(err)
		}
		defer client.Del(context.Background(), string(boards[i]))
	}
	readers := make([]*Reader, 2)
	for i, keep := range []time.Duration{0, 10 * time.Second} {
		cfg := newEnv().config()
		cfg.Origin, cfg.SmallStale, cfg.Boards, cfg.Hot = origin.New(client, wire.DefaultNames()), keep, nil, nil
		r, err := NewReader(cfg, nil)
		if err != nil {
			b.Fatal(err)
		}
		readers[i] = r
	}
	var took [2][]time.Duration
	n := 0
	for b.Loop() {
		for i, r := range readers {
			if n%2 == 1 {
				i, r = 1-i, readers[1-i]
			}
			begin := time.Now()
			a := rankcache.One(b.Context(), r, rankcache.Query{Board: boards[n/2%len(boards)], Limit: 50})
			took[i] = append(took[i], time.Since(begin))
			if a.Err != nil || len(a.Entries) != 50 {
				b.Fatal(a.Err, len(a.Entries))
			}
		}
		n++
	}
	if readers[1].bounds.next.(*stale).order.Len() == 0 {
		b.Fatal("no page is kept")
	}
	quantile := func(i, percent int) float64 {
		all := slices.Sorted(slices.Values(took[i]))
		return float64(all[len(all)*percent/100].Nanoseconds())
	}
	for _, percent := range []int{10, 50} {
		b.ReportMetric(quantile(1, percent)/quantile(0, percent), fmt.Sprintf("times-p%d", percent))
		b.ReportMetric(quantile(0, percent)/1000, fmt.Sprintf("us-without-p%d", percent))
	}
}
