package compat

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"rankcache/wire"
)

// maxLen is the longest request in an older form that is read, in bytes.
const maxLen = 64 << 10

// maxExact is the greatest integer up to which a double has all.
const maxExact = 1 << 53

// fieldError is what is wrong with a request in an older form.
type fieldError struct {
	Field string
	// Unsupported tells that the field may be right, but that boards have nothing like it.
	Unsupported bool
	Err         error
}

func (e *fieldError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *fieldError) Unwrap() error { return e.Err }

// badField returns the error of a field that is wrong.
func badField(field, format string, args ...any) *fieldError {
	return &fieldError{Field: field, Err: fmt.Errorf(format, args...)}
}

// unsupported returns the error of a field that boards have nothing like.
func unsupported(field, format string, args ...any) *fieldError {
	return &fieldError{field, true, fmt.Errorf(format, args...)}
}

// decode reads one JSON value of at most [maxLen] bytes, as [wire.DecodeStrict] does. Fields that to
// has not are unsupported. The error is a [*fieldError].
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

// integer is an integer from 0 that JSON has as a number or, as protobuf writes it, as a string.
type integer int

// UnmarshalJSON implements [json.Unmarshaler].
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

// decimal is a finite number that JSON may have as a string.
type decimal float64

// UnmarshalJSON implements [json.Unmarshaler].
func (n *decimal) UnmarshalJSON(data []byte) error {
	v, err := parseNumber(strings.Trim(string(data), `"`))
	if err != nil {
		return noNumber(data)
	}
	*n = decimal(v)
	return nil
}

// parseNumber takes decimal numbers alone, where ParseFloat has further forms. The value is
// infinite beside [strconv.ErrRange].
func parseNumber(text string) (float64, error) {
	if strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

// wholeScore is a score from 0: an unsigned number of 64 bits in the older form. A fraction
// is cut off.
type wholeScore float64

// UnmarshalJSON implements [json.Unmarshaler].
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

// shownScore returns a score as the older form has it: without its fraction.
func shownScore(score float64) (uint64, error) {
	if score < 0 || score >= 1<<64 {
		return 0, unsupported("score", "%v is not an unsigned number of 64 bits: read the board by /v1/boards", score)
	}
	return uint64(score), nil
}

// texts is a list of strings; one empty string is an empty list, as it was once asked for.
type texts []string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *texts) UnmarshalJSON(data []byte) error {
	if string(data) == `""` {
		return nil
	}
	return wire.DecodeStrict(data, (*[]string)(t))
}

// text is a string that JSON may have as a number.
type text string

// UnmarshalJSON implements [json.Unmarshaler].
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
