package compat

import (
	"bytes"
	"crypto/rand"
	"io"
	"net/http"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/rooms"
	"rankcache/wire"
)

// Changes answers changes in older forms, and has the next handler answer everything else. It may be used concurrently.
type Changes struct {
	next    http.Handler
	classes func() *rooms.File
	boards  rankcache.Reader
	board   rankcache.BoardID
}

// NewChanges returns a handler before next, which is the writer's with its checks of tokens. classes returns the rooms
// file in force, never nil; boards tells which boards Redis has; board is that of points without one, or "".
func NewChanges(next http.Handler, classes func() *rooms.File, boards rankcache.Reader, board rankcache.BoardID) *Changes {
	return &Changes{next, classes, boards, board}
}

func (h *Changes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer func(http.ResponseWriter, *http.Request, []byte) error
	switch r.URL.Path {
	case "/compat/rank/update":
		answer = h.update
	case "/compat/rank/delete":
		answer = h.remove
	case "/compat/incrScore":
		answer = increments{h}.incrScore
	default:
		if board := (points{h}).boardOf(r); board != "" {
			points{h}.serve(w, r, board)
			return
		}
		h.next.ServeHTTP(w, r)
		return
	}
	if r.Method != http.MethodPost {
		p := badMethod(http.MethodPost)
		p.Detail = "want POST"
		p.Write(w)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLen))
	if err != nil {
		httpserve.BodyProblem(err).Write(w)
		return
	}
	if err := answer(w, r, body); err != nil {
		changeProblem(err).Write(w)
	}
}

// changeProblem returns the problem of an error of a change: what is not of the request is a fault of this process.
func changeProblem(err error) *httpserve.Problem {
	return problemOf(err, func(error) httpserve.Problem { return internal.Problem })
}

// post sends a body to the next handler as if posted to a path. A token in the body stands in for the header's.
func (h *Changes) post(r *http.Request, path, token string, body []byte) *reply {
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.URL.RawPath, inner.RequestURI = path, "", path
	inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if token != "" && inner.Header.Get("Authorization") == "" {
		inner.Header.Set("Authorization", "Bearer "+token)
	}
	answer := &reply{header: make(http.Header), status: http.StatusOK}
	h.next.ServeHTTP(answer, inner)
	return answer
}

type reply struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter], as do the next two.
func (a *reply) Header() http.Header { return a.header }

func (a *reply) WriteHeader(status int) { a.status = status }

func (a *reply) Write(p []byte) (int, error) { return a.body.Write(p) }

func (a *reply) pass(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // the caller may have gone
}

// orderOf returns the order id of a message and a member. Without a message each request is a new change.
func orderOf(message, member string) string {
	if message == "" {
		message = rand.Text()
	}
	return message + "/" + member
}

// checkOrder returns an error if no order id can be made of the message and a member.
func checkOrder(order string) error {
	if err := wire.CheckOrderID(order); err != nil {
		return badField("msgId", "with the member behind it: %w", err)
	}
	return nil
}

func atOf(seconds *integer) int64 {
	if seconds == nil {
		return 0
	}
	return int64(*seconds) * 1000
}
