package compat

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"rankcache/internal/httpserve"
	"rankcache/wire"
)

const maxLen = 64 << 10 // the longest request in an older form that is read, in bytes

const maxExact = 1 << 53 // the greatest integer up to which a double has all

// fieldError is what is wrong with a request in an older form.
type fieldError struct {
	Field       string
	Unsupported bool // the field may be right, but that boards have nothing like it
	Err         error
}

func (e *fieldError) Error() string { return e.Field + ": " + e.Err.Error() }

func (e *fieldError) Unwrap() error { return e.Err }

func badField(field, format string, args ...any) *fieldError {
	return &fieldError{Field: field, Err: fmt.Errorf(format, args...)}
}

// unsupported returns the error of a field that boards have nothing like.
func unsupported(field, format string, args ...any) *fieldError {
	return &fieldError{field, true, fmt.Errorf(format, args...)}
}

// decode reads one JSON value of at most [maxLen] bytes; unknown fields are unsupported. The error is a [*fieldError].
func decode(data []byte, to any) error {
	if len(data) > maxLen {
		return badField("json", "want at most %d bytes", maxLen)
	}
	err := wire.DecodeStrict(data, to)
	if own, ok := errors.AsType[*fieldError](err); ok {
		return own
	}
	if bad, ok := errors.AsType[*wire.BadJSON](err); ok {
		return &fieldError{cmp.Or(bad.Field, "json"), bad.Unknown, bad.Err}
	}
	return nil
}

// rankObj names a board by the ids of its class and the value of its one dimension.
type rankObj struct {
	RankID integer `json:"rankId"`
	ObjID  text    `json:"objId,omitempty"`
}

type integer int // an integer from 0 that JSON has as a number or, as protobuf writes it, as a string

func (n *integer) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	v, err := strconv.ParseUint(strings.Trim(string(data), `"`), 10, 53)
	if err != nil {
		return noNumber(data)
	}
	*n = integer(v)
	return nil
}

func noNumber(data []byte) error { return fmt.Errorf("is %.40s, not a number in range", data) }

type decimal float64 // a finite number that JSON may have as a string

func (n *decimal) UnmarshalJSON(data []byte) error {
	v, err := parseNumber(strings.Trim(string(data), `"`))
	if err != nil {
		return noNumber(data)
	}
	*n = decimal(v)
	return nil
}

// parseNumber takes decimal numbers alone, unlike ParseFloat. The value is infinite beside [strconv.ErrRange].
func parseNumber(text string) (float64, error) {
	if strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

type wholeScore float64 // a score from 0: an unsigned number of 64 bits in the older form. A fraction is cut off.

func (s *wholeScore) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	v, err := parseNumber(text)
	whole, bad := strconv.ParseUint(text, 10, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return badField("score", "%.40s is not a number", data)
	case v < 0:
		return unsupported("score", "%.40s is negative", data)
	case bad == nil && whole > maxExact || bad != nil && v >= maxExact:
		return unsupported("score", "%.40s is above 2^53, up to which scores are exact", data)
	}
	*s = wholeScore(math.Floor(v))
	return nil
}

// shownScore returns a score without its fraction, and code 0; the nearest unsigned one, and 422, where it is none.
func shownScore(score float64) (shown uint64, code int) {
	switch {
	case score < 0:
		return 0, http.StatusUnprocessableEntity
	case score >= 1<<64:
		return math.MaxUint64, http.StatusUnprocessableEntity
	}
	return uint64(score), 0
}

type texts []string // a list of strings; one empty string is an empty list, as it was once asked for

func (t *texts) UnmarshalJSON(data []byte) error {
	if string(data) == `""` {
		return nil
	}
	return wire.DecodeStrict(data, (*[]string)(t))
}

type text string // a string that JSON may have as a number

func (t *text) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(t))
	}
	var n json.Number
	if json.Unmarshal(data, &n) != nil {
		return fmt.Errorf("is %.40s, not a string", data)
	}
	*t = text(n)
	return nil
}

type problem struct{ httpserve.Problem } // an error that is answered as it is

func (p problem) Error() string { return p.Code + ": " + p.Detail }

// internal answers a fault of this process.
var internal = problem{httpserve.Problem{Status: http.StatusInternalServerError, Code: "internal", Title: "Internal error"}}

func notFound(code, title, detail string) error {
	return problem{httpserve.Problem{Status: http.StatusNotFound, Code: code, Title: title, Detail: detail}}
}

func badMethod(allow string) *httpserve.Problem {
	return &httpserve.Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Title: "Method not allowed", Allow: allow}
}

// problemOf returns the problem of an error of this package, or that which other makes of another error; nil for nil.
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

// envelope is what answers by rank_name are in. Both names of a field have the same value: callers use either.
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
