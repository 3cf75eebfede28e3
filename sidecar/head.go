package sidecar

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"
)

// The head of an answer, as the library writes it, begins with its status and its
// date.
const (
	headBegin = "HTTP/1.1 200 OK\r\nDate: "
	dateLen   = len("Mon, 02 Jan 2006 15:04:05 GMT")
	lineEnd   = "\r\n"
)

// newHead returns the head of an answer with these bytes as the library writes it,
// without what differs from answer to answer: the date, for which it holds room, and
// the age and empty line, which come behind it; nil for what Redis answered, which is
// not asked for that way.
func newHead(k *coded, source Source) []byte {
	if source == SourceRedis {
		return nil
	}
	var h fasthttp.ResponseHeader
	setCoding(&h, k.coding)
	h.SetContentType(contentJSON)
	h.SetContentLength(len(k.data))
	setTag(&h, k.etag, source)
	return bytes.TrimSuffix(h.AppendBytes(nil), []byte(lineEnd))
}

// appendHeader appends the whole header of an answer that begins with head. date is
// what is written into it.
func appendHeader(dst, head, date []byte, currentAt time.Time) []byte {
	from := len(dst) + len(headBegin)
	dst = append(dst, head...)
	copy(dst[from:from+dateLen], date)
	if !currentAt.IsZero() {
		dst = append(append(dst, headerAge...), ": "...)
		dst = append(appendAge(dst, time.Now(), currentAt), lineEnd...)
	}
	return append(dst, lineEnd...)
}
