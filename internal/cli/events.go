package cli

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"rankcache/internal/httpserve"
)

const (
	// maxEvents and eventsFor bound what is kept of the log: some 0.5 MiB at most.
	maxEvents    = 1000
	eventsFor    = time.Hour
	maxEventText = 300     // the longest text of one attribute, in bytes
	maxEvent     = 2 << 10 // the longest event; of a longer one only the message is kept
)

// eventRing keeps the latest lines of the log from level info on, for GET /events. mu is a leaf.
type eventRing struct {
	mu      sync.Mutex
	events  []keptEvent // oldest first
	dropped int         // that were not an hour old
}

type keptEvent struct {
	at   time.Time
	json json.RawMessage
}

func (e *eventRing) handler() slog.Handler {
	return slog.NewJSONHandler(e, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: boundAttr})
}

func boundAttr(_ []string, a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	if err, is := v.Any().(error); is {
		v = slog.StringValue(err.Error())
	}
	if v.Kind() == slog.KindString && len(v.String()) > maxEventText {
		v = slog.StringValue(v.String()[:maxEventText] + "…")
	}
	a.Value = v
	return a
}

// Write takes one line of the JSON handler, which does not write two at once.
func (e *eventRing) Write(line []byte) (int, error) {
	text := bytes.Clone(bytes.TrimSpace(line))
	if len(text) > maxEvent {
		var short struct {
			Time  time.Time `json:"time"`
			Level string    `json:"level"`
			Msg   string    `json:"msg"`
			Cut   bool      `json:"cut"`
		}
		if err := json.Unmarshal(text, &short); err != nil {
			return 0, err
		}
		short.Cut = true
		text, _ = json.Marshal(short) // texts, a time and a bool
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget()
	if len(e.events) == maxEvents {
		e.events, e.dropped = append(e.events[:0], e.events[1:]...), e.dropped+1
	}
	e.events = append(e.events, keptEvent{time.Now(), text})
	return len(line), nil
}

func (e *eventRing) forget() {
	old := 0
	for old < len(e.events) && time.Since(e.events[old].at) > eventsFor {
		old++
	}
	e.events = append(e.events[:0], e.events[old:]...)
}

// EventsBody is the stable JSON of GET /events.
type EventsBody struct {
	Events  []json.RawMessage `json:"events"`  // oldest first
	Dropped int               `json:"dropped"` // events of an hour that had more than are kept
}

func (e *eventRing) serve(w http.ResponseWriter, _ *http.Request) {
	httpserve.WriteJSON(w, http.StatusOK, e.latest())
}

func (e *eventRing) latest() EventsBody {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget()
	body := EventsBody{Events: make([]json.RawMessage, len(e.events)), Dropped: e.dropped}
	for i := range e.events {
		body.Events[i] = e.events[i].json
	}
	return body
}
