package origin

import (
	"fmt"
	"strconv"
	"testing"

	"rankcache"
)

// BenchmarkPage reads the first 50 rows of a board of 57,000, as a transaction
// and as a script, with one member. Redis's own CPU, which all
// readers share, is what decides between them.
func BenchmarkPage(b *testing.B) {
	bd := newBoard(b)
	var entries []rankcache.Entry
	for i := range 57_000 {
		entries = append(entries, rankcache.Entry{Member: strconv.Itoa(1_000_000 + i), Score: float64(i * 7919 % 100_003)})
	}
	for len(entries) > 0 {
		bd.fill(b, 57_000, entries[:1000]...)
		entries = entries[1000:]
	}
	measure := func(name string, read func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			before := bd.cpu(b)
			for b.Loop() {
				must(b, read())
			}
			b.ReportMetric((bd.cpu(b)-before)*1e6/float64(b.N), "redis-cpu-us/op")
		})
	}
	measure("multi", func() error {
		return bd.ask(rankcache.Query{Limit: 50}).Err
	})
	measure("script", func() error {
		return bd.ask(rankcache.Query{Limit: 50, Members: []string{"1000000"}, Around: 1}).Err
	})
}

// cpu returns the seconds of CPU that the server has used.
func (b board) cpu(t testing.TB) (seconds float64) {
	t.Helper()
	info, err := b.client.Info(t.Context(), "cpu").Result()
	must(t, err)
	var sys, user, sysKids, userKids float64
	_, err = fmt.Sscanf(info, "# CPU\r\nused_cpu_sys:%f\r\nused_cpu_user:%f\r\nused_cpu_sys_children:%f\r\nused_cpu_user_children:%f",
		&sys, &user, &sysKids, &userKids)
	must(t, err)
	return sys + user
}
