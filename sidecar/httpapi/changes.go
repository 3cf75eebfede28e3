package httpapi

import (
	"context"
	"net/http"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
)

// scoresPath takes changes by POST; older forms read it by GET.
const scoresPath = "/v1/scores"

// changes answers requests that change boards, which the writer counts.
type changes struct{ writer fasthttp.RequestHandler } // nil: none are taken

func newChanges(writer http.Handler) changes {
	if writer == nil {
		return changes{}
	}
	// fasthttp gives the context of a request to the next one, and the writer may go on when it has answered.
	return changes{fasthttpadaptor.NewFastHTTPHandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writer.ServeHTTP(w, r.WithContext(context.Background()))
	})}
}

// answer answers a change, and returns false for any other request.
func (c changes) answer(ctx *fasthttp.RequestCtx) bool {
	switch path := string(ctx.URI().PathOriginal()); {
	case c.writer == nil, path == scoresPath && (ctx.IsGet() || ctx.IsHead()):
		return false
	case path == scoresPath, path == scoresPath+":batch", path == scoresPath+":delete":
		c.writer(ctx)
		return true
	}
	return false
}
