package sidecar

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"rankcache/internal/httpserve"
)

// checkFrame refuses requests whose end two servers could see in different
// places, which fasthttp lets pass, and ends the connection: what follows may be
// part of them.
func (s *DataServer) checkFrame(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if c, ok := ctx.Conn().(*dataConn); ok { // the request is complete
			c.enter(httpserve.Answering)
		}
		if !wellFramed(&ctx.Request.Header) {
			s.refuse(ctx, routeNone, unreadable())
			ctx.SetConnectionClose()
			return
		}
		next(ctx)
	}
}

func unreadable() *problem {
	return &problem{code: CodeBadRequest, detail: "the request is not well-formed HTTP/1.1"}
}

// conflict is the version that markConflict gives a request with two lengths: the
// body is read, and its real length stored, before the handler could look.
const conflict = "HTTP/two-lengths"

// markConflict is called when the header has been read.
func markConflict(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	const chunked = -1
	if h.ContentLength() == chunked && hasField(h.RawHeaders(), "content-length") {
		h.SetProtocol(conflict)
	}
	return fasthttp.RequestConfig{}
}

// wellFramed reports whether the request has one length and a version that we
// know.
func wellFramed(h *fasthttp.RequestHeader) bool {
	return h.IsHTTP11() || string(h.Protocol()) == "HTTP/1.0"
}

// hasField reports whether one of the lines begins with the field's name.
func hasField(lines []byte, name string) bool {
	for line := range bytes.SplitSeq(lines, []byte("\n")) {
		field, _, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(bytes.TrimSpace(field), []byte(name)) {
			return true
		}
	}
	return false
}
