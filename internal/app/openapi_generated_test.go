package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"rankcache/internal/testkit"
	"rankcache/internal/testkit/apitest"
	"rankcache/sidecar"
)

// kindsOfClasses has a class of each kind; %s begins the ids of their boards.
const kindsOfClasses = `classes:
- {name: plain, title: Plain, board: "%[1]s:{zone}", period: none, ids: {act: 7, rank: 2}, mode: super-hot, dims: {zone: ["7"]}}
- {name: daily, board: "%[1]s-d:{zone}:{period}", period: day, ops: [incr], ledger: true, data: true, feeds: [ever]}
- {name: ever, board: "%[1]s-e:{zone}", period: none, ops: [incr]}
- {name: rolled, board: "%[1]s-r:{zone}:{period}", rolling: {of: daily, last: 3}}
- {name: split, board: "%[1]s-s:{period}", period: week, shards: 3}
- {name: laps, board: "%[1]s-l:{zone}:{period}", period: 30m, order: asc, ops: [best], score: integer, ties: first}
- {name: season, board: "%[1]s-f:{zone}:{period}", period: month, durable: true, ops: [set, incr, delete]}
- {name: top_two, board: "%[1]s-t:{zone}", period: none, ops: [incr], trim: 2}
`

// TestGeneratedRequests holds the answers of every listener to requests that are made from the document against it:
// good and broken parameters and bodies, of a class of each kind, wrong methods, bodies too large, other paths.
func TestGeneratedRequests(t *testing.T) {
	t.Parallel()
	doc, err := apitest.Load(sidecar.OpenAPI())
	must(t, err)
	h := newFixture(t)
	name, database := testkit.Name(t), testkit.Database(t, "postgres")
	h.writeRooms(t, fmt.Sprintf(kindsOfClasses, name)+fmt.Sprintf("boards:\n- {match: %q, mode: super-hot}\n- {match: %q, mode: blocked}\n", h.star, h.blocked))
	h.give(t, h.star, 3)
	l := startListening(t, append([]string{"ledger", "--http", "127.0.0.1:0", "--serve-reads", "--database", database, "--topic-ledger", name, "--ledger-group", name}, h.common...)...)
	s := h.serve(t, "--admin-token", "open sesame", "--profile-redis-key", "profile:<member>", "--rpc", "127.0.0.1:0", "--ledger-url", l.URL("http", ""), "--compat-board", string(h.small))
	s.WaitReady(time.Minute)
	values := apitest.Values{
		"board": {string(h.star), string(h.small), string(h.blocked), name + ":7", name + "-s", "nothing"}, "class": {"plain", "daily", "ever", "rolled", "split", "laps", "season", "top_two", "nothing"},
		"dims": {"zone=7", "zone=8", "zone=", "zone=7&zone=8", "land=1", ""}, "member": {"m1", "nobody"}, "score": {"1"}, "at": {"now", "previous", "20200101", "2026-01-01T00:00:00Z"}, "tag": {"20200101", "now"},
		"name": {"app.js", "heap"}, "entry": {"uid=4711", "match=x", "uid=1&match=x"}, "uid": {"4711"}, "rank_name": {"plain"}, "rank_type": {"7"}, "rank_item": {"m1"}, "op": {"incr"}, "min_state": {"1-1-", "x-1-1"}, "cursor": {"x"},
		"expect": {"state=ready", "state=asleep", "x"}, "If-None-Match": {"*", `"x"`}, "If-Match": {"*", `"x"`}}
	g := &generated{doc: doc, seen: map[string]bool{}}
	for _, at := range []struct {
		of       *child
		listener string
		tags     []string
	}{{s, "data", []string{"data", "older"}}, {s, "rpc", []string{"live"}}, {s, "admin", []string{"admin", "health"}}, {s, "health", []string{"health"}},
		{l, "http", []string{"ledger", "health"}}, {h.writer, "health", []string{"health"}}, {h.writer, "scores", []string{"writer", "older"}}} {
		requests := doc.Generate(values, at.tags...)
		if len(requests) < 30 {
			t.Errorf("only %d requests for %s", len(requests), at.listener)
		}
		g.run(t, at.listener, at.of.URL(at.listener, ""), requests)
	}
	for _, kind := range []string{"200", "304", "400", "403", "404", "405", "409", "412", "413", "422"} {
		if !g.seen[kind] {
			t.Errorf("no request was answered %s", kind)
		}
	}
}

// generated sends generated requests and checks what is answered.
type generated struct {
	doc *apitest.Document

	mu   sync.Mutex
	seen map[string]bool // of statuses, and of faults that were told
}

// run sends the requests to a listener: in the small size of each operation every third one, in a turn of its own.
func (g *generated) run(t *testing.T, listener, base string, requests []apitest.Exchange) {
	work, every := make(chan apitest.Exchange), testkit.Sized(3, 1)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 8}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for e := range work {
				g.one(t, client, listener, base, e)
			}
		})
	}
	for i := 0; i < len(requests); i += every {
		work <- requests[i]
	}
	close(work)
	wg.Wait()
}

func (g *generated) one(t *testing.T, client *http.Client, listener, base string, e apitest.Exchange) {
	err := send(t.Context(), client, base, &e)
	g.mu.Lock()
	g.seen[fmt.Sprint(e.Status)] = true
	g.mu.Unlock()
	if err == nil {
		err = g.doc.CheckAnswer(e)
	}
	if err == nil && e.Status == http.StatusInternalServerError {
		err = errors.New("a fault of the process")
	}
	if err == nil {
		return
	}
	path, _, _ := strings.Cut(e.Target, "?")
	fault := fmt.Sprintf("%s, %s %s: %.300s", listener, e.Method, path, err)
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.seen[fault] { // one of a kind
		g.seen[fault] = true
		t.Errorf("%s\n%.200s with %v %.200q: %d %.300q", fault, e.Target, e.RequestHeader, e.RequestBody, e.Status, e.Body)
	}
}

// send sends the request and adds its answer; of a stream, what comes within a moment.
func send(ctx context.Context, client *http.Client, base string, e *apitest.Exchange) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, e.Method, base+e.Target, strings.NewReader(e.RequestBody))
	if err != nil {
		return err
	}
	for name, v := range e.RequestHeader {
		req.Header[name] = v
	}
	req.Header.Set("Authorization", "Bearer open sesame")
	req.Header.Set("Content-Type", "application/json")
	e.RequestHeader = req.Header
	resp, err := client.Do(req)
	if err != nil && len(e.RequestBody) > 1<<20 {
		return fmt.Errorf("a large body: %w", err)
	} else if err != nil {
		return err
	}
	defer resp.Body.Close()
	e.Status, e.Header = resp.StatusCode, resp.Header
	if e.Method != http.MethodHead && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		first := make([]byte, 1024)
		n, err := resp.Body.Read(first)
		e.Body = string(first[:n])
		return err
	}
	var body bytes.Buffer
	_, err = io.Copy(&body, resp.Body)
	e.Body = body.String()
	return err
}
