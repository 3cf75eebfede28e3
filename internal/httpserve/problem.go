package httpserve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
)

// Problem is an error as application/problem+json.
type Problem struct {
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Code       string `json:"code"`               // stable: callers may decide by it
	Argument   string `json:"argument,omitempty"` // that is wrong
	Detail     string `json:"detail,omitempty"`
	Allow      string `json:"-"` // of a 405: the methods that are allowed
	RetryAfter int    `json:"-"` // when the caller is to try again, in seconds; 0: in a second after a 503
}

// Write answers p.
func (p Problem) Write(w http.ResponseWriter) {
	if p.Status == http.StatusServiceUnavailable || p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(max(p.RetryAfter, 1)))
	}
	if p.Allow != "" {
		w.Header().Set("Allow", p.Allow)
	}
	body, err := encode(p)
	if err != nil { // strings and a number only: can't be
		panic(err)
	}
	write(w, p.Status, "application/problem+json", body)
}

// BodyProblem returns the problem for an error of reading a body, from a [http.MaxBytesReader] if it has a limit.
func BodyProblem(err error) Problem {
	var timeout net.Error
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return Problem{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large", Title: "Body too large",
			Detail: fmt.Sprintf("want at most %d bytes", tooLarge.Limit)}
	}
	if errors.As(err, &timeout) && timeout.Timeout() {
		return Problem{Status: http.StatusRequestTimeout, Code: "request_timeout", Title: "Request came in too slowly"}
	}
	return Problem{Status: http.StatusBadRequest, Code: "bad_request", Title: "Body could not be read"}
}

// WriteJSON answers v, with Cache-Control: no-store.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Cache-Control", "no-store")
	body, err := encode(v)
	if err != nil { // for instance a NaN in a rate: better a clear error than half a body
		Problem{Status: http.StatusInternalServerError, Code: "internal", Title: "Internal error", Detail: err.Error()}.Write(w)
		return
	}
	write(w, status, "application/json", body)
}

func encode(v any) ([]byte, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // the answer is no HTML
	err := enc.Encode(v)
	return body.Bytes(), err
}

func write(w http.ResponseWriter, status int, content string, body []byte) {
	w.Header().Set("Content-Type", content)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that left is none of our business
}
