package app

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

func TestLogLevelComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l logLevel
		want := func(level string, until time.Duration) {
			t.Helper()
			synctest.Wait()
			got := l.status()
			if got.Level != level || (got.Until == nil) != (until == 0) || until != 0 && !got.Until.Equal(time.Now().Add(until)) {
				t.Errorf("%+v, want %s for %v", got, level, until)
			}
		}
		l.configure(slog.LevelWarn)
		want("warn", 0)
		l.set(slog.LevelDebug, 10*time.Minute)
		time.Sleep(9 * time.Minute)
		want("debug", time.Minute)
		l.set(slog.LevelInfo, 10*time.Minute)
		time.Sleep(9 * time.Minute) // the first one is over
		want("info", time.Minute)
		time.Sleep(time.Minute)
		want("warn", 0)
	})
}

// What a level is set to acts on the log of the process.
func TestLogLevelActsOnTheLog(t *testing.T) {
	var out strings.Builder
	o := &commonOptions{logLevel: "warn", logFormat: "json"}
	log, err := o.logger(&out)
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("before")
	o.level.set(slog.LevelDebug, time.Hour)
	log.Debug("while")
	o.level.end(o.level.until)
	log.Info("after")
	if got := out.String(); strings.Contains(got, "before") || !strings.Contains(got, "while") || strings.Contains(got, "after") {
		t.Errorf("the log has %s", got)
	}
}
