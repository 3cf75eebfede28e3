package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	"rankcache/localboard"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
)

// bigBoard is a real local board of n members with Zipf-like scores.
func bigBoard(tb testing.TB, id rankcache.BoardID, n int) *localboard.Board {
	tb.Helper()
	entries := make([]rankcache.Entry, n)
	for i := range entries {
		entries[i] = rankcache.Entry{Member: fmt.Sprint(1_000_000 + i), Score: float64(5_000_000 / (i + 1))}
	}
	b := localboard.New(id)
	if err := b.Load(1000, entries); err != nil {
		tb.Fatal(err)
	}
	b.Publish()
	return b
}

const bigSize = 210_000

func benchReader(tb testing.TB) *sidecar.Reader {
	env := newEnv()
	cfg := env.config()
	cfg.Boards = fixture.Boards[sidecar.Board]{"local": bigBoard(tb, "local", bigSize)}
	return readerOf(tb, cfg)
}

func BenchmarkReaderTop(b *testing.B) {
	r, qs, as := benchReader(b), []rankcache.Query{{Board: "local", Limit: 50}}, make([]rankcache.Answer, 1)
	b.ReportAllocs()
	for b.Loop() {
		if r.Read(context.Background(), qs, as); as[0].Err != nil {
			b.Fatal(as[0].Err)
		}
	}
}

func BenchmarkReaderStanding(b *testing.B) {
	r, qs, as := benchReader(b), []rankcache.Query{{Board: "local"}}, make([]rankcache.Answer, 1)
	names := make([]string, 4096)
	for i := range names {
		names[i] = fmt.Sprint(1_000_000 + i*7919%bigSize)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := i % len(names)
		qs[0].Members = names[at : at+1]
		if r.Read(context.Background(), qs, as); as[0].Err != nil {
			b.Fatal(as[0].Err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	q := rankcache.Query{Board: "local", Limit: 50}
	a := rankcache.One(context.Background(), benchReader(b), q)
	dst := make([]byte, 0, 8<<10)
	b.ReportAllocs()
	for b.Loop() {
		dst = encode.AppendPage(dst[:0], &q, &a, &encode.Show{}, &encode.Joined{})
	}
	b.SetBytes(int64(len(dst)))
}

// benchPaths are the requests whose handler is measured.
var benchPaths = []struct{ name, path string }{
	{"top50", "/v1/boards/local/top"},
	{"top10", "/v1/boards/local/top?limit=10"},
	{"top50-me", "/v1/boards/local/top?me=1150000"},
	{"top50-profiles", "/v1/boards/local/top?profiles=1"},
	{"hot-top50", "/v1/boards/hot/top"},
	{"standing", "/v1/boards/local/members/1150000"},
	{"around4", "/v1/boards/local/members/1150000?around=4"},
}

// BenchmarkHandler measures the handler alone, without a connection.
func BenchmarkHandler(b *testing.B) {
	s, err := New(benchReader(b), Config{}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range benchPaths {
		b.Run(p.name, func(b *testing.B) {
			ctx := requestCtx(p.path)
			b.ReportAllocs()
			for b.Loop() {
				ctx.Response.Reset()
				s.checkHost(ctx)
			}
			if ctx.Response.StatusCode() != 200 {
				b.Fatal(ctx.Response.String())
			}
		})
	}
}

// BenchmarkClass compares reads by class with the same reads by board: by the handler alone,
// which parses each, and as whole requests over a Unix socket.
func BenchmarkClass(b *testing.B) {
	env := newClassEnv(b)
	const id = "gift:7:20261122-35"
	cfg := env.config()
	cfg.Tiers, cfg.Boards = fixture.Tiers(classFile), fixture.Boards[sidecar.Board]{id: bigBoard(b, id, bigSize)}
	settings := env.settings()
	start, begun := time.Unix(0, env.now.Load()), time.Now()
	settings.Now = func() time.Time { return start.Add(time.Since(begun)) } // at the cost of a clock
	s, err := New(readerOf(b, cfg), settings, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, read := range []string{"/top?limit=20", "/top?limit=20&me=1150000", "/members/1150000?around=4"} {
		for _, kind := range []struct{ name, path string }{
			{"board", "/v1/boards/" + id + read}, {"class", "/v1/classes/gift-half-hour" + read + "&zone=7"},
		} {
			b.Run("handler"+read+"/"+kind.name, func(b *testing.B) {
				ctx := requestCtx(kind.path)
				b.ReportAllocs()
				for b.Loop() {
					ctx.Response.Reset()
					s.checkHost(ctx)
				}
				if ctx.Response.StatusCode() != 200 {
					b.Fatal(ctx.Response.String())
				}
			})
			b.Run("request"+read+"/"+kind.name, func(b *testing.B) {
				exchange(b, func(ln net.Listener) error { return s.Serve(context.Background(), ln) }, kind.path)
			})
		}
	}
}

// BenchmarkWholePage compares a page with all that stands on it with the requests that it
// replaces, by the handler alone and as whole requests over a Unix socket. The member
// changes each time.
func BenchmarkWholePage(b *testing.B) {
	s, err := New(benchReader(b), Config{}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		b.Fatal(err)
	}
	kinds := []struct {
		name  string
		paths []string // of one page; %d is the member
	}{
		{"replaced", []string{"/v1/boards/local/top", "/v1/boards/local/members/%d", "/v1/boards/local/members/%d?around=4"}},
		{"whole", []string{"/v1/boards/local/top?me=%d&around=4&gap=1"}},
	}
	for _, kind := range kinds {
		pages := make([][]*fasthttp.RequestCtx, 512)
		requests := make([][][]byte, len(pages))
		for i := range pages {
			for _, path := range kind.paths {
				if strings.Contains(path, "%d") {
					path = fmt.Sprintf(path, 1_000_000+i*7919%bigSize)
				}
				pages[i] = append(pages[i], requestCtx(path))
				requests[i] = append(requests[i], []byte("GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"))
			}
		}
		b.Run("handler/"+kind.name, func(b *testing.B) {
			defer cpuPerOp(b)()
			for i := 0; b.Loop(); i++ {
				for _, ctx := range pages[i%len(pages)] {
					ctx.Response.Reset()
					s.checkHost(ctx)
				}
			}
		})
		b.Run("server/"+kind.name, func(b *testing.B) {
			exchangeAll(b, func(ln net.Listener) error { return s.Serve(context.Background(), ln) }, requests)
		})
	}
}

// cpuPerOp reports the CPU of the process, in µs an operation, when what it returns is called.
func cpuPerOp(b *testing.B) func() {
	before := cpuTime(b)
	return func() { b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/1e3/float64(b.N), "cpu-us/op") }
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func requestCtx(path string) *fasthttp.RequestCtx {
	var ctx fasthttp.RequestCtx
	ctx.Init2(&clientConn{}, nil, false)
	ctx.Request.SetRequestURI("http://localhost" + path)
	ctx.URI() // parsed before the handler is called, as the server does
	return &ctx
}

// BenchmarkServer compares whole requests over a Unix socket with a fixed body of
// the same length on a bare server of the same library.
func BenchmarkServer(b *testing.B) {
	s, err := New(benchReader(b), Config{}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range benchPaths[:6] {
		ctx := requestCtx(p.path)
		s.handle(ctx)
		fixed := append([]byte(nil), ctx.Response.Body()...)
		bare := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.SetContentType(contentJSON)
			ctx.Response.SetBodyRaw(fixed)
		}}
		b.Run(p.name+"/fixed", func(b *testing.B) { exchange(b, bare.Serve, p.path) })
		b.Run(p.name+"/rankcache", func(b *testing.B) {
			exchange(b, func(ln net.Listener) error { return s.Serve(context.Background(), ln) }, p.path)
		})
	}
}

// exchange sends requests one after the other.
func exchange(b *testing.B, serve func(net.Listener) error, path string) {
	exchangeAll(b, serve, [][][]byte{{[]byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n")}})
}

// exchangeAll sends the requests of one page after the other, each when the one before it
// was answered.
func exchangeAll(b *testing.B, serve func(net.Listener) error, pages [][][]byte) {
	ln, err := httpserve.Listen("unix:"+b.TempDir()+"/s", slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	go func() { _ = serve(ln) }() // ends when the listener is closed
	conn, err := net.Dial("unix", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	var res fasthttp.Response
	b.ReportAllocs()
	defer cpuPerOp(b)()
	for i := 0; b.Loop(); i++ {
		for _, request := range pages[i%len(pages)] {
			if _, err := conn.Write(request); err != nil {
				b.Fatal(err)
			}
			if err := res.Read(r); err != nil || res.StatusCode() != 200 {
				b.Fatal(err, res.StatusCode())
			}
		}
	}
}

// TestNoAllocations: what a kept page or a local standing costs the collector.
func TestNoAllocations(t *testing.T) {
	if testkit.Race {
		t.Skip("the race detector makes sync.Pool drop what it is given")
	}
	env := newEnv()
	cfg := env.config()
	cfg.Hot = quietHot{env.Hot}
	cfg.Boards = fixture.Boards[sidecar.Board]{"local": bigBoard(t, "local", 20_000)}
	r := readerOf(t, cfg)
	s, err := New(r, Config{}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/v1/boards/local/top", "/v1/boards/local/top?limit=10", "/v1/boards/local/top?profiles=1",
		"/v1/boards/local/top?me=1000900", "/v1/boards/%6cocal/top?room=88", "/v1/boards/hot/top",
		"/v1/boards/local/members/1000900",
	} {
		ctx := requestCtx(path)
		n := testing.AllocsPerRun(200, func() {
			ctx.Response.Reset()
			s.checkHost(ctx)
		})
		if n != 0 || ctx.Response.StatusCode() != 200 {
			t.Errorf("%s: %v allocations, status %d", path, n, ctx.Response.StatusCode())
		}
	}
	as := make([]rankcache.Answer, 1)
	for _, q := range []rankcache.Query{{Limit: 50}, {Members: []string{"1000900"}}, {Limit: 50, Members: []string{"1000900", "1000901"}, Gap: true}} {
		q.Board = "local"
		qs := []rankcache.Query{q}
		if n := testing.AllocsPerRun(200, func() { r.Read(context.Background(), qs, as) }); n != 0 || as[0].Err != nil {
			t.Errorf("%+v: %v allocations, %v", q, n, as[0].Err)
		}
	}
}

// quietHot is a hot tier whose counting allocates nothing.
type quietHot struct{ *fixture.Hot }

func (quietHot) Count(rankcache.BoardID) {}

func (quietHot) Take(*rankcache.Query, *rankcache.Answer) {}
