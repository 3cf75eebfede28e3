package httpapi

import (
	"bytes"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"rankcache/sidecar"
)

// header is the header of an answer as fasthttp writes it, but for what differs from
// answer to answer: the date, which is overwritten, and the age, which comes last.
type header struct {
	bytes []byte
	date  int // offset of the date
}

const (
	dateField  = "Date: "
	lineEnd    = "\r\n"
	headerRoom = 256 // bytes; none is longer
)

// newHeaders returns the header of an answer with the bytes of e, and that of an answer
// 304, for a caller that has them already.
func newHeaders(e *encoded, source sidecar.Source) (full, notModified header) {
	answer := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(answer)
	h := &answer.Header
	setCoding(h, codingNone)
	setTag(h, e.etag, source)
	h.SetStatusCode(fasthttp.StatusNotModified)
	notModified = headerOf(h)

	h.Reset()
	setCoding(h, e.coding)
	setTag(h, e.etag, source)
	h.SetContentType(contentJSON)
	h.SetContentLength(len(e.data))
	return headerOf(h), notModified
}

func headerOf(h *fasthttp.ResponseHeader) header {
	bytes := bytes.TrimSuffix(h.AppendBytes(make([]byte, 0, headerRoom)), []byte(lineEnd))
	return header{bytes, strings.Index(view(bytes), dateField) + len(dateField)}
}

// append appends the whole header.
func (h header) append(dst, date []byte, currentAt time.Time) []byte {
	from := len(dst) + h.date
	dst = append(dst, h.bytes...)
	copy(dst[from:], date)
	if !currentAt.IsZero() {
		dst = append(append(dst, headerAge...), ": "...)
		dst = append(appendAge(dst, time.Now(), currentAt), lineEnd...)
	}
	return append(dst, lineEnd...)
}
