package origin

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// everyMethod calls each method once and returns the errors by name.
func everyMethod(ctx context.Context, o *Origin, b rankcache.BoardID) map[string]error {
	errs := make(map[string]error)
	for name, q := range map[string]rankcache.Query{"page": {Limit: 50}, "standings": {Members: []string{"a"}}, "whole": {Limit: 50, Members: []string{"a"}, Around: 9, Gap: true}} {
		q.Board = b
		errs[name] = rankcache.One(ctx, o, q).Err
		several := make([]rankcache.Answer, 2)
		o.Read(ctx, []rankcache.Query{q, q}, several)
		errs["several of "+name] = several[1].Err
	}
	_, errs["stamps"] = o.Stamps(ctx, []rankcache.BoardID{b})
	_, errs["sample"] = o.Sample(ctx, b, []string{"a"}, 3)
	_, _, errs["scan"] = o.Scan(ctx, b, func([]rankcache.Entry) error { return nil })
	_, errs["rooms"] = o.RoomBoards(ctx, []string{string(b)})
	return errs
}

func TestUnavailable(t *testing.T) {
	for name, breakIt := range map[string]func(*servers.Redis) error{
		"stopped": func(r *servers.Redis) error { return r.Stop() },
		"paused":  func(r *servers.Redis) error { return r.Pause() },
	} {
		t.Run(name, func(t *testing.T) {
			server := testkit.StartRedis(t, servers.RedisOptions{})
			client, err := Dial(Options{URL: "redis://" + server.Addr(), Timeout: 50 * time.Millisecond})
			must(t, err)
			defer client.Close()
			o := New(client, wire.DefaultNames(), WithTimeout(50*time.Millisecond))
			must(t, breakIt(server))
			for method, err := range everyMethod(t.Context(), o, "1_2_3") {
				if !errors.Is(err, rankcache.ErrUnavailable) {
					t.Errorf("%s: %v", method, err)
				}
			}
			calls := testutil.ToFloat64(o.bulkReader.metrics.errors.WithLabelValues("totals", "unavailable"))
			_, err = o.Stamps(t.Context(), slices.Repeat([]rankcache.BoardID{"1_2_3"}, 3*stampsAtOnce))
			calls = testutil.ToFloat64(o.bulkReader.metrics.errors.WithLabelValues("totals", "unavailable")) - calls
			if !errors.Is(err, rankcache.ErrUnavailable) || calls != 1 {
				t.Errorf("stamps of three pipelines: %v after %v calls, want one", err, calls)
			}
			equal(t, "counted", testutil.ToFloat64(o.bulkReader.metrics.errors.WithLabelValues("page", "unavailable")), 1.0)
		})
	}
}

// An error reply of Redis is not an outage: its text is kept.
func TestRefused(t *testing.T) {
	b := newBoard(t)
	for _, key := range []string{b.names().BoardKey(b.id), b.names().RoomKey(string(b.id))} {
		must(t, b.client.Set(t.Context(), key, "no board", 0).Err())
	}
	for method, err := range everyMethod(t.Context(), b.Origin, b.id) {
		if errors.Is(err, rankcache.ErrUnavailable) || err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// A meta that is none and an infinite score are errors.
func TestBadReply(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 1, abc...)
	must(t, b.client.Set(t.Context(), b.names().MetaKey(b.id), "many", 0).Err())
	for method, err := range everyMethod(t.Context(), b.Origin, b.id) {
		if method != "rooms" && (!errors.Is(err, rankcache.ErrUnreadable) || !strings.Contains(err.Error(), `"many"`)) {
			t.Errorf("meta: %s: %v", method, err)
		}
	}
	must(t, b.client.Del(t.Context(), b.names().MetaKey(b.id)).Err())
	must(t, b.client.Do(t.Context(), "ZADD", b.names().BoardKey(b.id), "+inf", "a").Err())
	for method, err := range everyMethod(t.Context(), b.Origin, b.id) {
		if method != "rooms" && method != "stamps" && method != "scores" && (!errors.Is(err, rankcache.ErrUnreadable) || !strings.Contains(err.Error(), string(b.id)) || !strings.Contains(err.Error(), `+Inf of member "a"`)) {
			t.Errorf("score: %s: %v", method, err)
		}
	}
}

func TestCallerCancels(t *testing.T) {
	b := newBoard(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for method, err := range everyMethod(ctx, b.Origin, b.id) {
		if !errors.Is(err, context.Canceled) || errors.Is(err, rankcache.ErrUnavailable) {
			t.Errorf("%s: %v", method, err)
		}
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	for method, err := range everyMethod(ctx, b.Origin, b.id) {
		if !errors.Is(err, rankcache.ErrUnavailable) {
			t.Errorf("deadline: %s: %v", method, err)
		}
	}
}

// After a truncated reply go-redis returns preallocated rows and an error. The rows
// must not become a page.
func TestTruncatedReply(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	go truncateReplies(listener)
	client := redis.NewClient(&redis.Options{Addr: listener.Addr().String(), Protocol: 2, DisableIdentity: true,
		MaxRetries: -1, ContextTimeoutEnabled: true})
	defer client.Close()
	page := rankcache.One(t.Context(), New(client, wire.DefaultNames(), WithTimeout(testTimeout)), rankcache.Query{Board: "1_2_3", Limit: 50})
	if !errors.Is(page.Err, rankcache.ErrUnavailable) || page.Entries != nil {
		t.Errorf("got %d rows, error %v", len(page.Entries), page.Err)
	}
}

// truncateReplies replies to a transaction of three commands and closes after the
// first of 50 rows.
func truncateReplies(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		buf := make([]byte, 4096)
		_, _ = conn.Read(buf)
		_, _ = io.WriteString(conn, "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n*100\r\n$1\r\na\r\n$1\r\n7\r\n$1\r\nb\r\n")
		conn.Close()
	}
}
