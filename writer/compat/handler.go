package compat

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"rankcache/internal/httpserve"
	"rankcache/rooms"
	"rankcache/wire"
)

// Handler answers the older forms, and has the next handler answer everything else. It may
// be used concurrently.
type Handler struct {
	next    http.Handler
	classes func() *rooms.File
	now     func() time.Time
}

// New returns a handler before next, which is the writer's with its checks of tokens.
// classes returns the rooms file in force, never nil.
func New(next http.Handler, classes func() *rooms.File) *Handler {
	return &Handler{next, classes, time.Now}
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer func(http.ResponseWriter, *http.Request, []byte) error
	switch r.URL.Path {
	case "/compat/rank/update":
		answer = h.update
	case "/compat/rank/delete":
		answer = h.remove
	case "/compat/incrScore":
		answer = increments{h}.incrScore
	default:
		h.next.ServeHTTP(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		httpserve.Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Title: "Method not allowed", Detail: "want POST"}.Write(w)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, wire.MaxCompatLen))
	if err != nil {
		httpserve.BodyProblem(err).Write(w)
		return
	}
	if err := answer(w, r, body); err != nil {
		problemOf(err).Write(w)
	}
}

// problem is an error that is answered as it is.
type problem struct{ httpserve.Problem }

func (p problem) Error() string { return p.Code + ": " + p.Detail }

func problemOf(err error) httpserve.Problem {
	if p, ok := errors.AsType[problem](err); ok {
		return p.Problem
	}
	p := httpserve.Problem{Status: http.StatusBadRequest, Code: "bad_argument", Title: "Bad argument", Argument: "json", Detail: err.Error()}
	if e, ok := errors.AsType[*wire.CompatError](err); ok {
		p.Argument, p.Detail = e.Field, e.Err.Error()
		if e.Unsupported {
			p.Status, p.Code, p.Title = http.StatusUnprocessableEntity, "not_supported", "Not supported"
		}
	}
	return p
}

// command is what the next handler takes.
type command struct {
	Board  string            `json:"board,omitempty"`
	Class  string            `json:"class,omitempty"`
	Dims   map[string]string `json:"dims,omitempty"`
	Member string            `json:"member"`
	Op     string            `json:"op"`
	Delta  *float64          `json:"delta,omitempty"`
	Score  *float64          `json:"score,omitempty"`
	Order  string            `json:"order"`
	At     int64             `json:"at,omitempty"`
}

// post sends a body to the next handler as if the caller had posted it to a path, and returns
// the answer. A token in the body stands in for that of the header.
func (h *Handler) post(r *http.Request, path, token string, body []byte) *reply {
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

// reply is an answer of the next handler.
type reply struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter], as do the next two.
func (a *reply) Header() http.Header { return a.header }

func (a *reply) WriteHeader(status int) { a.status = status }

func (a *reply) Write(p []byte) (int, error) { return a.body.Write(p) }

// pass sends the answer on as it is.
func (a *reply) pass(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // the caller may have gone
}

// orderOf returns the order id of a message and a member. Without a message each request is
// a new change.
func orderOf(message, member string) string {
	if message == "" {
		message = rand.Text()
	}
	return message + "/" + member
}

// checkOrder returns an error if no order id can be made of the message and a member.
func checkOrder(order string) error {
	if err := wire.CheckOrderID(order); err != nil {
		return wire.BadField("msgId", "with the member behind it: %w", err)
	}
	return nil
}

// atOf returns the time of a change in Unix milliseconds; 0: now.
func atOf(seconds *wire.CompatID) int64 {
	if seconds == nil {
		return 0
	}
	return int64(*seconds) * 1000
}

// errorCode is the code of one row, or of an envelope: 0, or the status of its problem.
func errorCode(p *httpserve.Problem) (int, string) {
	if p == nil {
		return 0, ""
	}
	text := p.Code
	if p.Argument != "" {
		text += ": " + strconv.Quote(p.Argument)
	}
	if p.Detail != "" {
		text += fmt.Sprintf(": %s", p.Detail)
	}
	return p.Status, text
}
