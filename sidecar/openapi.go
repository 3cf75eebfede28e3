package sidecar

import (
	_ "embed"
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"
)

// openAPI describes every path of all listeners.
//
//go:embed openapi.yaml
var openAPI string

// OpenAPI returns the HTTP reference as an OpenAPI 3.1 document in YAML.
func OpenAPI() string { return openAPI }

const (
	pathOpenAPI = "/openapi.yaml"
	contentYAML = "application/yaml"
)

// reference answers with the document on the data port.
func (s *DataServer) reference(ctx *fasthttp.RequestCtx, c *call) *problem {
	ctx.Response.Header.SetContentType(contentYAML)
	ctx.Response.SetBodyString(openAPI)
	s.counters.add(ctx.ConnID(), c.route, outcomeReference)
	return nil
}

// serveReference is reference on net/http.
func serveReference(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", contentYAML)
	_, _ = strings.NewReader(openAPI).WriteTo(w) // a caller that left is none of our business
}

// Routed answers what mux has no pattern for with the problems that it is, where
// a ServeMux would answer in plain text. What mux does have is left to it.
func Routed(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refused := &statusOnly{header: make(http.Header)}
		h.ServeHTTP(refused, r)
		if refused.status == http.StatusMethodNotAllowed {
			writeProblem(w, &problem{code: CodeBadMethod, allow: refused.header.Get("Allow")})
			return
		}
		writeUnknownPath(w, r)
	})
}

func writeUnknownPath(w http.ResponseWriter, _ *http.Request) {
	writeProblem(w, &problem{code: CodeUnknownPath, detail: "GET /openapi.yaml on the data and the admin port lists the paths"})
}

// statusOnly keeps what a handler would answer, without its body.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) Write(p []byte) (int, error) { return len(p), nil }
func (s *statusOnly) WriteHeader(status int)      { s.status = status }
