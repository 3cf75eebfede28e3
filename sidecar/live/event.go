package live

import (
	"strconv"
	"time"

	"rankcache"
	"rankcache/wire"
)

// Kind is what an [Event] is.
type Kind uint8

// The kinds of events.
const (
	// Update is the page or a diff: see [Event.SSE] and [Event.Message].
	Update Kind = iota
	// Age is the heartbeat: Event.Age and Event.Source.
	Age
	// End is the last event, for Event.Code; the client may come back after Event.Retry.
	End
	// Expired is the last event of a subscription whose [Options.Lifetime] is over. Clients are
	// not sent it.
	Expired
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
