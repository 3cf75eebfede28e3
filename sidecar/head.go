package sidecar

import (
	"bytes"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// head is the header of an answer as the library writes it, up to what differs from
// answer to answer: the date, which is written over the one in it, and the age, which
// comes behind it.
type head struct {
	bytes []byte
	date  int // where it is
}

const (
	dateField = "Date: "
	lineEnd   = "\r\n"
	headRoom  = 256 // bytes; none is longer
)

// newHeads returns the head of an answer with the bytes of k, and that of one that says
// that the caller has them already.
func newHeads(k *coded, source Source) (whole, same head) {
	answer := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(answer)
	h := &answer.Header
	setCoding(h, codingNone)
	setTag(h, k.etag, source)
	h.SetStatusCode(fasthttp.StatusNotModified)
	same = headOf(h)

	h.Reset()
	setCoding(h, k.coding)
	setTag(h, k.etag, source)
	h.SetContentType(contentJSON)
	h.SetContentLength(len(k.data))
	return headOf(h), same
}

func headOf(h *fasthttp.ResponseHeader) head {
	bytes := bytes.TrimSuffix(h.AppendBytes(make([]byte, 0, headRoom)), []byte(lineEnd))
	return head{bytes, strings.Index(view(bytes), dateField) + len(dateField)}
}

// append appends the whole header.
func (h head) append(dst, date []byte, currentAt time.Time) []byte {
	from := len(dst) + h.date
	dst = append(dst, h.bytes...)
	copy(dst[from:], date)
	if !currentAt.IsZero() {
		dst = append(append(dst, headerAge...), ": "...)
		dst = append(appendAge(dst, time.Now(), currentAt), lineEnd...)
	}
	return append(dst, lineEnd...)
}
