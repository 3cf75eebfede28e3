package httpserve

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// Problem is an error as application/problem+json.
type Problem struct {
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Code     string `json:"code"`               // stable: callers may decide by it
	Argument string `json:"argument,omitempty"` // that is wrong
	Detail   string `json:"detail,omitempty"`
}

// Write answers p; after a 503 the caller is to try again in a second.
func (p Problem) Write(w http.ResponseWriter) {
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	body, err := encode(p)
	if err != nil { // strings and a number only: can't be
		panic(err)
	}
	write(w, p.Status, "application/problem+json", body)
}

// WriteJSON answers v, which is not to be stored by who gets it.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Cache-Control", "no-store")
	body, err := encode(v)
	if err != nil { // a NaN in a rate, say: better a clear error than half a body
		Problem{Status: http.StatusInternalServerError, Code: "internal", Title: "Internal error", Detail: err.Error()}.Write(w)
		return
	}
	write(w, status, "application/json", body)
}

func encode(v any) ([]byte, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // what is told is no page
	err := enc.Encode(v)
	return body.Bytes(), err
}

func write(w http.ResponseWriter, status int, content string, body []byte) {
	w.Header().Set("Content-Type", content)
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that left is none of our business
}
