package compat

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"rankcache/internal/httpserve"
)

// problem is an error that is answered as it is.
type problem struct{ httpserve.Problem }

func (p problem) Error() string { return p.Code + ": " + p.Detail }

// internal answers a fault of this process.
var internal = problem{httpserve.Problem{Status: http.StatusInternalServerError, Code: "internal", Title: "Internal error"}}

func notFound(code, title, detail string) error {
	return problem{httpserve.Problem{Status: http.StatusNotFound, Code: code, Title: title, Detail: detail}}
}

func badMethod(allow string) *httpserve.Problem {
	return &httpserve.Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Title: "Method not allowed", Allow: allow}
}

// problemOf returns the problem of an error of this package, or that which other makes of
// another error; nil for nil.
func problemOf(err error, other func(error) httpserve.Problem) *httpserve.Problem {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[problem](err); ok {
		return &own.Problem
	}
	if wrong, ok := errors.AsType[*fieldError](err); ok {
		return wrong.problem()
	}
	p := other(err)
	return &p
}

func (e *fieldError) problem() *httpserve.Problem {
	p := &httpserve.Problem{Status: http.StatusBadRequest, Code: "bad_argument", Title: "Bad argument", Argument: e.Field, Detail: e.Err.Error()}
	if e.Unsupported {
		p.Status, p.Code, p.Title = http.StatusUnprocessableEntity, "not_supported", "Not supported"
	}
	return p
}

// envelope is what answers of the forms by rank_name are in. Both names of a field have the
// same value: callers look at either.
type envelope struct {
	Code    int    `json:"code"` // 0, or the status of the answer
	ErrCode int    `json:"errcode"`
	Message string `json:"message"` // "ok", or what is wrong
	ErrMsg  string `json:"errmsg"`
	Data    any    `json:"data"`
}

// inEnvelope returns the envelope of data, or of a problem instead.
func inEnvelope(data any, p *httpserve.Problem) envelope {
	if p == nil {
		return envelope{Message: "ok", ErrMsg: "ok", Data: data}
	}
	text := messageOf(p)
	return envelope{p.Status, p.Status, text, text, nil}
}

// messageOf returns a problem in one line: its code, its argument and its detail.
func messageOf(p *httpserve.Problem) string {
	parts := slices.DeleteFunc([]string{p.Code, p.Argument, p.Detail}, func(part string) bool { return part == "" })
	return strings.Join(parts, ": ")
}
