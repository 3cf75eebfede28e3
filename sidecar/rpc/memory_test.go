package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"rankcache/internal/testkit/fixture"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// BenchmarkStreamMemory opens 1,000 streams, ten of a key, has their page change and reports
// heap and stacks of one. The client's end of the connection is in it, some 0.5 KiB of a stream over
// HTTP/1.1; what the kernel holds is not.
func BenchmarkStreamMemory(b *testing.B) {
	const streams, ofKey, changes, ofConn = 1000, 10, 100, 250
	target := func(i int) string { return fmt.Sprintf("/v1/boards/local/live?limit=%d", 50+i/ofKey) }
	for name, open := range map[string]func(b *testing.B, addr string){
		"http1": func(b *testing.B, addr string) {
			var buffer [1 << 10]byte
			for i := range streams {
				c := dial(b, addr)
				if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", target(i)); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadAtLeast(c, buffer[:], 100); err != nil {
					b.Fatal(err)
				}
			}
		},
		"http2": func(b *testing.B, addr string) {
			for i := 0; i < streams; i += ofConn {
				openHTTP2(b, dial(b, addr), ofConn, func(stream int) string { return target(i + stream) })
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				e := start(b)
				before := heapAndStacks()
				open(b, e.addr)
				e.change(changes)
				if got := e.hub.Streams(); got != streams {
					b.Fatalf("%d streams are open", got)
				}
				b.ReportMetric((heapAndStacks()-before)/streams, "B/stream")
			}
		})
	}
}

// change changes a score of the board "local" for so many times.
func (e *env) change(times int) {
	for i := range times {
		top := fixture.Copy(e.Local.Head.Load())
		top.Seq++
		top.Entries[0].Score += float64(i)
		e.Local.Head.Store(top)
		e.Changed("local")
		time.Sleep(5 * time.Millisecond)
	}
}

// openHTTP2 opens streams over one connection, and drops what they send. It returns when each has
// sent something.
func openHTTP2(b *testing.B, c net.Conn, streams int, target func(stream int) string) {
	const window = 1 << 30 // for all that is sent
	f := http2.NewFramer(c, c)
	_, err := io.WriteString(c, http2.ClientPreface)
	err = errors.Join(err, f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}), f.WriteWindowUpdate(0, window))
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	for i := range streams {
		head.Reset()
		for _, field := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "localhost"}, {":path", target(i)}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}) // a buffer takes all
		}
		err = errors.Join(err, f.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true}))
	}
	for sent := make(map[uint32]bool); err == nil && len(sent) < streams; {
		var frame http2.Frame
		if frame, err = f.ReadFrame(); err == nil && frame.Header().Type == http2.FrameData {
			sent[frame.Header().StreamID] = true
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, c) }() // until the test closes it
}

func heapAndStacks() float64 {
	runtime.GC()
	runtime.GC() // pools give back what they have after two
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}
