package rpc

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"
)

// BenchmarkStreamMemory opens 1,000 streams, ten of a key, has their page change and reports
// heap and stacks of one. The client's end of the connection is in it, some 0.5 KiB; what the
// kernel holds is not.
func BenchmarkStreamMemory(b *testing.B) {
	const streams, ofKey, changes = 1000, 10, 100
	for b.Loop() {
		e := start(b)
		before := heapAndStacks()
		var buffer [1 << 10]byte
		for i := range streams {
			c := dial(b, e.addr)
			if _, err := fmt.Fprintf(c, "GET /v1/boards/local/live?limit=%d HTTP/1.1\r\nHost: localhost\r\n\r\n", 50+i/ofKey); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadAtLeast(c, buffer[:], 100); err != nil {
				b.Fatal(err)
			}
		}
		for i := range changes {
			top := *e.Local.Top()
			top.Entries = slices.Clone(top.Entries)
			top.Seq++
			top.Entries[0].Score += float64(i)
			e.Local.Head.Store(&top)
			e.Changed("local")
			time.Sleep(5 * time.Millisecond)
		}
		b.ReportMetric((heapAndStacks()-before)/streams, "B/stream")
	}
}

func heapAndStacks() float64 {
	runtime.GC()
	runtime.GC() // pools give back what they have after two
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}
