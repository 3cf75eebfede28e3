package cli

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// messages returns what the ring has, and the events themselves.
func (e *eventRing) messages(t *testing.T) (msgs []string, events []map[string]any) {
	t.Helper()
	for _, text := range e.latest().Events {
		var event map[string]any
		if err := json.Unmarshal(text, &event); err != nil {
			t.Fatal(err)
		}
		msgs, events = append(msgs, event["msg"].(string)), append(events, event)
	}
	return msgs, events
}

// The ring has the last hour from level info on, with what the logger adds, whatever the
// log's level is.
func TestEventsAreOfTheLastHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := &eventRing{}
		quiet := slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError})
		log := slog.New(slog.NewMultiHandler(quiet, ring.handler()))
		log.Info("first")
		time.Sleep(eventsFor)
		log.Debug("too detailed")
		log.With("part", "replay").Warn("second", "board", "1_2_3", "err", errors.New("away"))
		msgs, events := ring.messages(t)
		if strings.Join(msgs, ",") != "first,second" {
			t.Fatalf("after an hour: %q", msgs)
		}
		if e := events[1]; e["level"] != "WARN" || e["part"] != "replay" || e["board"] != "1_2_3" || e["err"] != "away" || e["time"] == nil {
			t.Errorf("the event is %v", e)
		}
		time.Sleep(time.Nanosecond)
		if msgs, _ := ring.messages(t); strings.Join(msgs, ",") != "second" {
			t.Errorf("after more than an hour: %q", msgs)
		}
	})
}

func TestEventsAreBounded(t *testing.T) {
	ring := &eventRing{}
	log := slog.New(ring.handler())
	for range maxEvents {
		log.Info("many")
	}
	log.Info("text", "err", errors.New(strings.Repeat("x", 10*maxEventText)))
	long := log
	for range 2 * maxEvent / maxEventText {
		long = long.With("more", strings.Repeat("y", maxEventText))
	}
	long.Error("line")
	body := ring.latest()
	if len(body.Events) != maxEvents || body.Dropped != 2 {
		t.Errorf("%d events, %d dropped; want %d, 2", len(body.Events), body.Dropped, maxEvents)
	}
	_, events := ring.messages(t)
	text, line := events[maxEvents-2], events[maxEvents-1]
	if got := text["err"].(string); len(got) != maxEventText+len("…") {
		t.Errorf("a text of %d bytes is kept", len(got))
	}
	if line["msg"] != "line" || line["level"] != "ERROR" || line["cut"] != true || line["more"] != nil {
		t.Errorf("the long line is kept as %v", line)
	}
}
