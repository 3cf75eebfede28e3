package live

import (
	"slices"
	"strconv"
	"time"

	"rankcache"
	"rankcache/wire"
)

const pageShare = 70 // which part of the page's bytes a diff may have, in percent; else the page is sent

const eventRoom = 160 // room for what events have beside the page's bytes: a name, ids and a length

// Message is an update whose encoding is not shared.
type Message struct {
	Meta
	ID        string
	Base      string // the version that a diff is of; "": the page
	Len       int    // rows of the page
	Rows      []*Row
	Positions []int // those of Rows, of a diff
}

// Message returns what an event of kind Update tells.
func (ev *Event) Message() *Message {
	v, base := ev.version, ev.base
	at, page := v.changed(nil, base)
	v.publisher.hub.metrics.sent(page)
	m := &Message{Meta: v.Meta, ID: string(v.publisher.appendID(nil, v.n)), Len: len(v.rows), Rows: v.rows}
	if page {
		return m
	}
	m.Base, m.Positions, m.Rows = string(v.publisher.appendID(nil, base)), at, make([]*Row, len(at))
	for i, n := range at {
		m.Rows[i] = v.rows[n]
	}
	return m
}

// sse returns the update as a server-sent event, encoded for the first subscriber. The bytes are shared.
func (v *version) sse(base uint64) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := slices.IndexFunc(v.encodings, func(e encoding) bool { return e.base == base })
	if i < 0 {
		i = len(v.encodings)
		v.encodings = append(v.encodings, v.encode(base))
	}
	v.publisher.hub.metrics.sent(v.encodings[i].page)
	return v.encodings[i].data
}

func (v *version) encode(base uint64) encoding {
	var room [64]int
	at, page := v.changed(room[:0], base)
	if page {
		return encoding{base, v.appendPageEvent(make([]byte, 0, v.pageLength()+eventRoom)), true}
	}
	v.publisher.hub.metrics.diffs.Inc()
	return encoding{base, v.appendDiffEvent(make([]byte, 0, v.diffLength(at)+eventRoom), base, at), false}
}

// changed appends the positions of rows changed since base, and reports whether the page is sent in place.
func (v *version) changed(at []int, base uint64) (changed []int, page bool) {
	if base == 0 {
		return at, true
	}
	at = v.appendChanged(at, base)
	return at, v.diffLength(at)*100 > v.pageLength()*pageShare
}

func (v *version) pageLength() int { return len(v.head) + v.length + len(v.tail) }

// diffLength returns about how long a diff is.
func (v *version) diffLength(at []int) int {
	n := len(v.head) + len(v.tail)
	for _, i := range at {
		n += len(v.rows[i].JSON) + len(`"at":00,`)
	}
	return n
}

func (v *version) appendPageEvent(dst []byte) []byte {
	dst = v.appendEvent(dst, "page")
	dst = append(dst, v.head...)
	for i, r := range v.rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, r.JSON...)
	}
	dst = v.publisher.appendID(append(append(dst, v.tail[:len(v.tail)-1]...), `,"id":"`...), v.n)
	return append(dst, "\"}\n\n"...)
}

// appendDiffEvent appends the page without its rows, and the rows that have changed.
func (v *version) appendDiffEvent(dst []byte, base uint64, at []int) []byte {
	dst = v.appendEvent(dst, "diff")
	dst = append(dst, v.head[:len(v.head)-len(`,"entries":[`)]...)
	dst = append(dst, v.tail[1:len(v.tail)-1]...)
	dst = v.publisher.appendID(append(dst, `,"id":"`...), v.n)
	dst = v.publisher.appendID(append(dst, `","base":"`...), base)
	dst = strconv.AppendInt(append(dst, `","len":`...), int64(len(v.rows)), 10)
	dst = append(dst, `,"rows":[`...)
	for i, n := range at {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, `{"at":`...), int64(n), 10)
		dst = append(append(dst, ','), v.rows[n].JSON[1:]...)
	}
	return append(dst, "]}\n\n"...)
}

func (v *version) appendEvent(dst []byte, name string) []byte {
	dst = append(append(append(dst, "event: "...), name...), "\nid: "...)
	return append(v.publisher.appendID(dst, v.n), "\ndata: "...)
}

// appendNumber appends n, null for 0.
func appendNumber(dst []byte, n uint64) []byte {
	if n == 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendUint(dst, n, 10)
}

// Kind is what an [Event] is.
type Kind uint8

// The kinds of events.
const (
	// Update is the page or a diff: see [Event.SSE] and [Event.Message].
	Update  Kind = iota
	Age          // the heartbeat: Event.Age and Event.Source
	End          // the last event, for Event.Code; the client may come back after Event.Retry
	Expired      // the last event of a subscription whose [Options.Lifetime] is over. Clients are not sent it.
)

// Code is why a stream ends.
type Code string

// The codes of [End].
const (
	CodeBlocked  Code = "blocked"  // the operator has blocked the board
	CodeDeleted  Code = "deleted"  // Redis has no such board any more, or its period is not kept
	CodeDraining Code = "draining" // this process is about to end
)

// Event is one event of a stream.
type Event struct {
	Kind   Kind
	Code   Code
	Retry  time.Duration
	Age    time.Duration
	Source rankcache.Source

	version *version
	base    uint64 // the version that the client has; 0: the page is sent
}

// SSE returns the event as a server-sent event. The bytes may be shared.
func (ev *Event) SSE() (dst []byte) {
	switch ev.Kind {
	case Update:
		return ev.version.sse(ev.base)
	case Age:
		dst = strconv.AppendInt(append(dst, "event: age\ndata: {\"age_ms\":"...), ev.Age.Milliseconds(), 10)
		dst = wire.AppendString(append(dst, `,"source":`...), ev.Source.String())
	default:
		dst = strconv.AppendInt(append(dst, "event: end\nretry: "...), ev.Retry.Milliseconds(), 10)
		dst = wire.AppendString(append(dst, "\ndata: {\"code\":"...), string(ev.Code))
	}
	return append(dst, "}\n\n"...)
}
