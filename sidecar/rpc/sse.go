package rpc

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"rankcache"
	"rankcache/sidecar/encode"
	"rankcache/sidecar/live"
)

type eventStreams struct{ streams } // the streams as server-sent events

func (s eventStreams) liveBoard(w http.ResponseWriter, r *http.Request) {
	s.live(w, r, address{board: rankcache.BoardID(r.PathValue("board"))})
}

func (s eventStreams) liveClass(w http.ResponseWriter, r *http.Request) {
	s.live(w, r, address{class: r.PathValue("class"), dims: make(map[string]string)})
}

func (s eventStreams) live(w http.ResponseWriter, r *http.Request, a address) {
	if p := a.parse(r.URL.RawQuery); p != nil {
		writeProblem(w, p)
		return
	}
	watch, p := s.open(r.Context(), a, r.Header.Get("Last-Event-Id"))
	if p != nil {
		writeProblem(w, p)
		return
	}
	defer watch.close()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx passes each event on at once
	if r.Method != http.MethodHead {
		sendEvents(w, r, watch)
	}
}

// sendEvents sends the events of a watch until one of them ends it or the client has left.
func sendEvents(w http.ResponseWriter, r *http.Request, watch *watch) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Transfer-Encoding", "identity") // no chunks: the stream ends with its connection
	}
	control := http.NewResponseController(w)
	_ = watch.run(r.Context(), control, func(ev *live.Event) error { // who has left gets no answer
		_, err := w.Write(ev.SSE())
		return errors.Join(err, control.Flush())
	})
}

// parse reads the query. Unknown and repeated arguments are errors, as on the data port.
func (a *address) parse(raw string) *encode.Problem {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return encode.BadArgument("query", "is not percent-encoded")
	}
	for name, values := range query {
		if len(values) > 1 {
			return encode.BadArgument(name, "is given twice")
		}
		if p := a.set(name, values[0]); p != nil {
			return p
		}
	}
	return nil
}

func (a *address) set(name, value string) *encode.Problem {
	switch name {
	case "limit":
		n, err := strconv.Atoi(value)
		if a.limit = n; err != nil || n < 1 || n > rankcache.MaxTop {
			return encode.BadArgument(name, "want 1 to "+strconv.Itoa(rankcache.MaxTop))
		}
	case "order":
		if value != "desc" && value != "asc" {
			return encode.BadArgument(name, "want desc or asc")
		}
		if a.order = rankcache.HighestFirst; value == "asc" {
			a.order = rankcache.LowestFirst
		}
	case "profiles":
		if a.profiles = value == "1"; !a.profiles && value != "0" {
			return encode.BadArgument(name, "want 0 or 1")
		}
	case "trend":
		if a.trend = value == "1"; !a.trend && value != "0" {
			return encode.BadArgument(name, "want 0 or 1")
		}
	case "room":
		a.room = value
	default:
		if a.class == "" {
			return encode.BadArgument(name[:min(len(name), 40)], "is no argument here: want limit order profiles room trend")
		}
		if name == "at" {
			a.at = value
			return nil
		}
		a.dims[name] = value
	}
	return nil
}

func writeProblem(w http.ResponseWriter, p *encode.Problem) {
	info := p.Info()
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if info.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", encode.RetryAfter)
	}
	w.WriteHeader(info.Status)
	_, _ = w.Write(p.Append(nil)) // a caller that left gets no answer
}

func unknownPath() *encode.Problem {
	return &encode.Problem{Code: encode.CodeUnknownPath, Detail: "want GET /v1/boards/{board}/live or /v1/classes/{class}/live, or a method of rankcache.v1.Boards; pages are on the data port"}
}
