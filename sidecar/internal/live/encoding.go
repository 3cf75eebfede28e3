package live

import "strconv"

// Format is one of the formats of updates, each encoded once for all subscribers.
type Format uint8

// The formats.
const (
	JSON     Format = iota // a server-sent event
	Protobuf               // a message of Watch
	ProtoJSON
)

// pageShare is which part of the page's bytes a diff may have, in percent; else the page is
// sent.
const pageShare = 70

// eventRoom is room for what events have beside the page's bytes: a name, ids and a length.
const eventRoom = 160

// Message is an update as formats other than [JSON] encode it.
type Message struct {
	Meta
	ID   string
	Base string // the version that a diff is of; "": the page
	Len  int    // rows of the page
	Rows []*Row
	// Positions are those of Rows, of a diff.
	Positions []int
}

// Encoded returns the update in a format, which encode makes if no subscriber has had it made
// before. The bytes are shared.
func (ev *Event) Encoded(format Format, encode func(*Message) []byte) []byte {
	v, base := ev.version, ev.base
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.encodings {
		if e := &v.encodings[i]; e.base == base && e.format == format {
			v.publisher.hub.metrics.sent(e.page)
			return e.data
		}
	}
	made := encoding{base: base, format: format}
	var room [64]int
	at := room[:0]
	if made.page = base == 0; !made.page {
		at = v.appendChanged(at, base)
		made.page = v.diffLength(at)*100 > v.pageLength()*pageShare
	}
	switch {
	case format != JSON:
		made.data = encode(v.message(base, at, made.page))
	case made.page:
		made.data = v.appendPageEvent(make([]byte, 0, v.pageLength()+eventRoom))
	default:
		made.data = v.appendDiffEvent(make([]byte, 0, v.diffLength(at)+eventRoom), base, at)
	}
	if !made.page {
		v.publisher.hub.metrics.diffs.Inc()
	}
	v.encodings = append(v.encodings, made)
	v.publisher.hub.metrics.sent(made.page)
	return made.data
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

func (v *version) message(base uint64, at []int, page bool) *Message {
	m := &Message{Meta: v.Meta, ID: string(v.publisher.appendID(nil, v.n)), Len: len(v.rows), Rows: v.rows}
	if page {
		return m
	}
	m.Base, m.Positions, m.Rows = string(v.publisher.appendID(nil, base)), append([]int(nil), at...), make([]*Row, len(at))
	for i, n := range at {
		m.Rows[i] = v.rows[n]
	}
	return m
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
