package sidecar

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// target returns the path and the query of the request line, both still
// percent-encoded, and the host that is asked. Nearly every request names a path;
// only one that names a whole URL is parsed as one, which costs as much as
// finding a member.
func target(ctx *fasthttp.RequestCtx) (host, path, query []byte) {
	line := ctx.Request.Header.RequestURI()
	if len(line) == 0 || line[0] != '/' || bytes.IndexByte(line, '#') >= 0 {
		u := ctx.URI()
		return u.Host(), u.PathOriginal(), u.QueryString()
	}
	path, query, _ = bytes.Cut(line, []byte{'?'})
	return ctx.Request.Header.Host(), path, query
}
