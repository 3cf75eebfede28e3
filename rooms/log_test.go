package rooms_test

import (
	"strings"
	"testing"

	"rankcache/rooms"
)

// What needs the log of all changes is named, and nothing else is refused.
func TestCheckWithoutLog(t *testing.T) {
	for text, want := range map[string]string{
		"rooms: [{uid: '88', mode: super-hot}]":                                                                    `room "88"`,
		"boards: [{match: lb, mode: hot}, {match: '9_*', mode: blocked}]":                                          "",
		"boards: [{match: lb, mode: super-hot}]":                                                                   `board "lb"`,
		"classes: [{name: day, board: 'd:{period}', period: day, tz: UTC, mode: super-hot}]":                       "class day: it is super-hot",
		"classes: [{name: day, board: 'd:{period}', period: day, tz: UTC, ledger: true}]":                          "class day: ledger",
		"classes: [{name: day, board: 'd:{period}', period: day, tz: UTC, durable: true}]":                         "class day: it is durable",
		"classes: [{name: day, board: 'd:{period}', period: day, tz: UTC, mode: hot}]":                             "",
		"classes: [{name: a, board: a, period: none, ops: [incr], feeds: [b]}, {name: b, board: b, period: none}]": "class a: feeds",
	} {
		f, err := rooms.Parse([]byte(text))
		if err != nil {
			t.Fatal(text, err)
		}
		if err := f.CheckWithoutLog(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// With the log in Redis whole boards in memory need no Kafka, and what the controller and the ledger do still does.
func TestCheckWithoutKafka(t *testing.T) {
	for text, want := range map[string]string{
		"rooms: [{uid: '88', mode: super-hot}]":  "",
		"boards: [{match: lb, mode: super-hot}]": "",
		"classes: [{name: all, board: all, period: none, mode: super-hot, ops: [incr], ties: first, trim: 100}]":                                         "",
		"classes: [{name: all, board: all, period: none, mode: super-hot, shards: 4}]":                                                                   "",
		"classes: [{name: day, board: 'd:{period}', period: day, tz: UTC, mode: hot}]":                                                                   "class day: it has periods",
		"classes: [{name: all, board: all, period: none, ledger: true}]":                                                                                 "class all: ledger",
		"classes: [{name: all, board: all, period: none, durable: true}]":                                                                                "class all: it is durable",
		"classes: [{name: a, board: a, period: none, ops: [incr], feeds: [b]}, {name: b, board: b, period: none}]":                                       "class a: feeds",
		"classes: [{name: day, board: 'd:{period}', period: day, tz: UTC, ops: [incr]}, {name: week, board: 'w:{period}', rolling: {of: day, last: 7}}]": "class day: it is durable",
	} {
		f, err := rooms.Parse([]byte(text))
		if err != nil {
			t.Fatal(text, err)
		}
		if err := f.CheckWithoutKafka(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
