package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rankcache/examples/live/go/live"
)

// slowViewer is a viewer's connection that takes an event when it is told to.
type slowViewer struct {
	http.ResponseWriter
	take     chan struct{}
	got      chan string
	deadline *time.Time // of writes
}

func (v slowViewer) Write(p []byte) (int, error) {
	<-v.take
	v.got <- string(p)
	return len(p), nil
}

func (v slowViewer) Flush() {}

func (v slowViewer) SetWriteDeadline(t time.Time) error {
	*v.deadline = t
	return nil
}

// watch has a viewer watch the board, who had the page with that id before.
func watch(t *testing.T, b *board, lastID string) slowViewer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	v := slowViewer{httptest.NewRecorder(), make(chan struct{}), make(chan string, 1), new(time.Time)}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	r.Header.Set("Last-Event-ID", lastID)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.serve(v, r)
	}()
	t.Cleanup(func() {
		cancel()
		close(v.take)
		<-done
	})
	return v
}

// takes lets the viewer's connection take one event and compares it.
func (v slowViewer) takes(t *testing.T, has, hasNot string) {
	t.Helper()
	v.take <- struct{}{}
	if got := <-v.got; !strings.Contains(got, has) || hasNot != "" && strings.Contains(got, hasNot) {
		t.Errorf("the viewer got %q, want %q and not %q", got, has, hasNot)
	}
}

// moved is the n-th event of a board: a page first, then diffs.
func moved(n int) live.Event {
	ev := live.Event{Kind: "diff", Page: &live.Page{ID: fmt.Sprint("a.", n), Entries: []live.Entry{{Rank: 1, Member: "m", Score: float64(n)}}},
		Data: fmt.Appendf(nil, `{"base":"a.%d"}`, n-1)}
	if n == 1 {
		ev.Kind = "page"
	}
	return ev
}

// TestSlowViewer: a viewer who takes nothing while the page changes gets the newest one next, and
// diffs as long as it keeps up.
func TestSlowViewer(t *testing.T) {
	b := newBoard()
	b.changed(moved(1))
	v := watch(t, b, "")
	v.takes(t, `"score":1}`, "event: diff")
	b.changed(moved(2))
	v.takes(t, `{"base":"a.1"}`, "event: page")
	for n := 3; n <= 1000; n++ {
		b.changed(moved(n))
	}
	v.take <- struct{}{}
	if got := <-v.got; !strings.Contains(got, "id: a.1000\n") { // it may have begun to write one of the first
		v.takes(t, "id: a.1000\n", "")
	}
	b.changed(moved(1001))
	v.takes(t, `{"base":"a.1000"}`, "event: page")
}

// TestQuietBoard: over HTTP/2 a deadline that has passed ends a stream to which nothing is written.
func TestQuietBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.changed(moved(1))
		v := watch(t, b, "")
		v.takes(t, `"score":1}`, "")
		synctest.Wait()
		if !v.deadline.IsZero() {
			t.Error("a write deadline is set while nothing is written")
		}
	})
}

// TestViewerComesBack: it gets what it lacks.
func TestViewerComesBack(t *testing.T) {
	b := newBoard()
	b.changed(moved(1))
	b.changed(moved(2))
	watch(t, b, "a.2").takes(t, "event: status", "entries")
	watch(t, b, "a.1").takes(t, `{"base":"a.1"}`, "event: page")
	watch(t, b, "z.9").takes(t, `"score":2}`, "event: diff")
}

// TestBlockedBoard: viewers lose the page and keep the reason while the sidecar refuses the board.
func TestBlockedBoard(t *testing.T) {
	b := newBoard()
	b.changed(moved(1))
	b.changed(live.Event{Kind: "end", Data: []byte(`{"code":"blocked"}`)})
	b.changed(live.Event{Kind: "away", Data: []byte("403")})
	v := watch(t, b, "a.1")
	v.takes(t, `"entries":[]`, "score")
	watch(t, b, "").takes(t, `"code":"blocked"`, "score")
	b.changed(moved(1))
	v.takes(t, `"score":1}`, "blocked")
}
