package adminapi

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"net/url"
	runtimepprof "runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"rankcache"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
)

// New returns the handler of the admin listener: /status, /boards/{board}/top, /metrics, /debug/pprof and the probes.
// The caller may add more, changes behind httpserve.RequireToken, and serves it through [Routed].
func New(st *Status, r *Readiness, metrics http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	addProbes(mux, r)
	mux.HandleFunc("GET /openapi.yaml", serveOpenAPI)
	mux.HandleFunc("GET /status", st.all)
	mux.HandleFunc("GET /status/{board}", st.board)
	mux.HandleFunc("GET /boards/{board}/top", st.top)
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	AddProfiles(mux)
	return mux
}

// AddProfiles adds /debug/pprof to a listener that only this machine may read.
func AddProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/{$}", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/{name}", serveRuntimeProfile)
	mux.HandleFunc("GET /debug/pprof/cmdline", writeUnknownPath) // flags may hold secrets
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}

func serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = strings.NewReader(sidecar.OpenAPI()).WriteTo(w) // the caller may have left
}

// serveRuntimeProfile answers one of the profiles that pprof.Index lists.
func serveRuntimeProfile(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if runtimepprof.Lookup(name) == nil {
		writeUnknownPath(w, r)
		return
	}
	pprof.Handler(name).ServeHTTP(w, r)
}

const defaultTop = 10 // the rows of GET /boards/{board}/top on the admin listener

// top answers GET /boards/{board}/top?limit=10 as the data port does, with profiles if there is a source of them.
func (st *Status) top(w http.ResponseWriter, r *http.Request) {
	q, p := topQuery(r)
	if p != nil {
		writeProblem(w, p)
		return
	}
	a := rankcache.One(r.Context(), st.Reader, q)
	if a.Err != nil {
		writeProblem(w, encode.ProblemOf(a.Err))
		return
	}
	j := encode.Joined{}
	if profiles := st.Reader.Profiles(); profiles != nil {
		j = encode.Join(r.Context(), profiles, a.Entries)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Rankcache-Source", a.Source.String())
	if a.Run != 0 {
		h.Set("Rankcache-State", a.State.String())
	}
	h.Set("Rankcache-Age-Ms", strconv.FormatInt(max(time.Since(a.CurrentAt).Milliseconds(), 0), 10))
	show := encode.ShowOf(&q, &a, nil)
	_, _ = w.Write(encode.AppendPage(nil, &q, &a, &show, &j)) // the caller may have left
}

// topQuery returns the query of the request. An operator's look at a board is not traffic.
func topQuery(r *http.Request) (q rankcache.Query, p *encode.Problem) {
	id, err := rankcache.ParseBoardID(r.PathValue("board"))
	if err != nil {
		return q, encode.BadArgument("board", err.Error())
	}
	q = rankcache.Query{Board: id, Limit: defaultTop, Uncounted: true}
	if text := r.URL.Query().Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > rankcache.MaxTop {
			return q, encode.BadArgument("limit", fmt.Sprintf("want 1 to %d", rankcache.MaxTop))
		}
	}
	return q, nil
}

// Routed answers with a problem what mux has no pattern for, and query arguments that the route does not take.
func Routed(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			if p := checkArgs(pattern, r.URL.RawQuery); p != nil {
				writeProblem(w, p)
				return
			}
			mux.ServeHTTP(w, r)
			return
		}
		refused := &statusOnly{header: make(http.Header)}
		h.ServeHTTP(refused, r)
		if refused.status == http.StatusMethodNotAllowed {
			writeProblem(w, &encode.Problem{Code: encode.CodeBadMethod, Allow: refused.header.Get("Allow")})
			return
		}
		writeUnknownPath(w, r)
	})
}

func writeUnknownPath(w http.ResponseWriter, _ *http.Request) {
	writeProblem(w, &encode.Problem{Code: encode.CodeUnknownPath, Detail: "GET /openapi.yaml on the data and the admin port lists the paths"})
}

// statusOnly keeps status and headers of a handler's answer, without its body.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) Write(p []byte) (int, error) { return len(p), nil }
func (s *statusOnly) WriteHeader(status int)      { s.status = status }

// CodeUnknownProfile is the code of an answer 404 about a profile that is not cached here.
const CodeUnknownProfile = string(encode.CodeUnknownProfile)

// WriteProblem answers an error as application/problem+json, for handlers that others add to the admin listener. code
// is one of the codes in the OpenAPI document; argument is for bad_argument and may be empty.
func WriteProblem(w http.ResponseWriter, code, argument, detail string) {
	writeProblem(w, &encode.Problem{Code: encode.Code(code), Argument: argument, Detail: detail})
}

// writeProblem answers p, which has no seq: no route here takes min_seq.
func writeProblem(w http.ResponseWriter, p *encode.Problem) { p.HTTP().Write(w) }

// argsOf are the query arguments of a route of the admin port. What is not listed reads its own, as live pages and
// profiles of the process do, or looks at none, as probes do, whose callers may add some.
var argsOf = map[string][]string{
	"GET /status":                          {expect, "limit", "start", "state", "match"},
	"GET /boards/{board}/top":              {"limit"},
	"DELETE /rooms":                        {"uid", "match"},
	"DELETE /rooms/bypass":                 {"board", "all"},
	"GET /status/{board}":                  nil,
	"POST /quit":                           nil,
	"GET /openapi.yaml":                    nil,
	"POST /boards/{board}/compare":         nil,
	"GET /boards/{board}/members/{member}": nil,
	"GET /history":                         nil,
	"GET /hotkeys":                         nil,
	"GET /events":                          nil,
	"GET /config":                          nil,
	"GET /runbooks.md":                     nil,
	"GET /rooms":                           nil,
	"POST /rooms":                          nil,
	"POST /rooms/bypass":                   nil,
	"GET /classes":                         nil,
	"PUT /classes":                         nil,
	"DELETE /classes":                      nil,
	"DELETE /profiles/{member}":            nil,
}

const expect = "expect" // may be given more than once, and tells what is wrong with it itself

const maxNamed = 40 // how much of an unknown argument a problem repeats, in bytes

// checkArgs returns the problem of arguments that the route does not take: none may be ignored.
func checkArgs(pattern, query string) *encode.Problem {
	names, listed := argsOf[pattern]
	if !listed {
		return nil
	}
	seen := make(map[string]bool)
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		_, err := url.ParseQuery(pair)
		switch {
		case pair == "":
		case !slices.Contains(names, name):
			return encode.BadArgument(name[:min(len(name), maxNamed)], "is no argument here: want "+wanted(names))
		case err != nil:
			return encode.BadArgument(name, fmt.Sprintf("%.80v: percent-encode it", err))
		case seen[name] && name != expect:
			return encode.BadArgument(name, "is given twice")
		case value == "" && name != expect:
			return encode.BadArgument(name, "is empty")
		}
		seen[name] = true
	}
	return nil
}

func wanted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " ")
}
