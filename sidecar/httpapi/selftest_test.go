package httpapi

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"rankcache"
	"rankcache/internal/testkit/fixture"
)

// TestCheckLibrary: a fasthttp that works in another way is noticed.
func TestCheckLibrary(t *testing.T) {
	s, err := New(newEnv().reader(), Config{}, fixture.FailOnWarn(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*fasthttp.Server)
		want   string // part of the error; "": none
	}{
		"as it is":             {func(*fasthttp.Server) {}, ""},
		"another server field": {func(srv *fasthttp.Server) { srv.NoDefaultServerHeader = false }, "answer 0"},
		"one request a connection": {func(srv *fasthttp.Server) { srv.DisableKeepalive = true },
			`"active read write closed"`},
		"reads byte by byte": {func(srv *fasthttp.Server) { srv.ReduceMemoryUsage = true }, "events of a connection"},
	} {
		srv := s.fasthttpServer(nil)
		c.change(srv)
		err := checkLibrary(srv)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestCheckAnswersWantsDate where the cache would write one.
func TestCheckAnswersWantsDate(t *testing.T) {
	b := newBody([]byte("{}"), &rankcache.Answer{Source: rankcache.SourceLocal}, nil)
	sent := append(b.full.append(nil, []byte("no date"), time.Time{}), b.data...)
	if err := checkAnswers(sent, b); err == nil || !strings.Contains(err.Error(), "want a date") {
		t.Error(err)
	}
}

// TestRequestCacheIsOff when the check fails, which is logged as an error.
func TestRequestCacheIsOff(t *testing.T) {
	var logged strings.Builder
	s, err := New(newEnv().reader(), Config{}, slog.New(slog.NewTextHandler(&logged, nil)), nil)
	if err != nil || !s.cacheRequests || logged.Len() > 0 {
		t.Fatalf("cached %v, %v, log %q; want it to be on", s.cacheRequests, err, &logged)
	}
	if trusted(errors.New("idle before write"), s.log) {
		t.Error("the cache is on")
	}
	if got := logged.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "idle before write") {
		t.Errorf("logged %q", got)
	}
}

// TestNoRequestCache: with it off every request is parsed, and answered alike.
func TestNoRequestCache(t *testing.T) {
	on, off := start(t, newEnv(), Config{}), start(t, newEnv(), Config{NoRequestCache: true})
	cached, parsed := on.dial(t, "unix"), off.dial(t, "unix")
	want := cached.warm(on, topRequest)
	for range 6 {
		if got := parsed.ask(topRequest, 1); changing.ReplaceAllString(got, "") != changing.ReplaceAllString(want, "") {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
	if n := off.answeredFromCache(); n != 0 {
		t.Errorf("%d connections answered from a cache", n)
	}
}
