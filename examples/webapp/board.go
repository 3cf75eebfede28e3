package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"rankcache/examples/live/go/live"
)

const writeTimeout = 5 * time.Second // of one event to one viewer

// board is the page of a board, for all its viewers. One goroutine changes it.
type board struct{ state atomic.Pointer[state] }

// state is what viewers are to see. It is never changed: all viewers share its bytes.
type state struct {
	id, base   string        // of the page, and of the one that diff is of
	page, diff []byte        // server-sent events
	status     string        // a server-sent event: live or not, and the age
	next       chan struct{} // closed when there is a newer state
}

func newBoard() *board {
	b := &board{}
	b.state.Store(&state{status: statusEvent(`{"live":false}`), next: make(chan struct{})})
	return b
}

// changed takes an event of the sidecar's stream.
func (b *board) changed(ev live.Event) {
	old := b.state.Load()
	s := *old
	s.next = make(chan struct{})
	switch ev.Kind {
	case "page", "diff":
		s.show(ev, old.id)
	case "age":
		s.status = statusEvent(fmt.Sprintf(`{"live":true,"age":%s}`, ev.Data))
	case "end":
		s.status = statusEvent(fmt.Sprintf(`{"live":false,"end":%s}`, ev.Data))
	case "away":
		if s.id != "" || s.page == nil { // else viewers keep why the board ended
			s.status = statusEvent(`{"live":false}`)
		}
	}
	if ev.Page == nil && s.id != "" { // blocked or deleted: viewers must not keep it
		s.id, s.base, s.diff, s.page = "", "", nil, []byte("event: page\nid: \ndata: {\"id\":\"\",\"entries\":[]}\n\n")
	}
	b.state.Store(&s)
	close(old.next)
}

// show encodes the page, once for all viewers, and keeps the sidecar's diff for those that have the page before.
func (s *state) show(ev live.Event, before string) {
	page, err := json.Marshal(ev.Page)
	if err != nil {
		return // numbers and strings always have a JSON
	}
	s.id, s.base, s.diff = ev.Page.ID, "", nil
	s.page = fmt.Appendf(nil, "event: page\nid: %s\ndata: %s\n\n", s.id, page)
	if ev.Kind == "diff" {
		s.base, s.diff = before, fmt.Appendf(nil, "event: diff\nid: %s\ndata: %s\n\n", s.id, ev.Data)
	}
	s.status = statusEvent(`{"live":true}`)
}

func statusEvent(data string) string { return "event: status\ndata: " + data + "\n\n" }

// serve streams the page to one viewer. A viewer has no queue: when its connection has taken an
// event, it gets the newest state, however many there were meanwhile.
func (b *board) serve(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx passes each event on at once
	last, status := r.Header.Get("Last-Event-ID"), ""
	// When the app is started again, its viewers come back over some seconds.
	events := fmt.Appendf(nil, "retry: %d\n\n", 500+rand.N(2500))
	for {
		s := b.state.Load()
		events = s.append(events, last)
		if s.status != status {
			events = append(events, s.status...)
		}
		last, status = s.id, s.status
		if control.SetWriteDeadline(time.Now().Add(writeTimeout)) != nil {
			return
		}
		if _, err := w.Write(events); err != nil || control.Flush() != nil {
			return
		}
		if control.SetWriteDeadline(time.Time{}) != nil { // over HTTP/2 it would reset a stream that is quiet
			return
		}
		select {
		case <-s.next:
			events = events[:0]
		case <-r.Context().Done():
			return
		}
	}
}

// append appends what a viewer that has the page with the id last lacks: nothing, the diff or the page.
func (s *state) append(events []byte, last string) []byte {
	switch {
	case last == s.id:
		return events
	case s.diff != nil && last == s.base:
		return append(events, s.diff...)
	}
	return append(events, s.page...)
}
