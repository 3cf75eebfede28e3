package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxCompatLen is the longest request in an older form that is read, in bytes.
const MaxCompatLen = 64 << 10

// maxExact is the greatest integer up to which a double has all.
const maxExact = 1 << 53

// CompatError is what is wrong with a request in an older form.
type CompatError struct {
	Field string
	// Unsupported tells that the field may be right, but that boards have nothing like it.
	Unsupported bool
	Err         error
}

func (e *CompatError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *CompatError) Unwrap() error { return e.Err }

// BadField returns the error of a field that is wrong.
func BadField(field, format string, args ...any) *CompatError {
	return &CompatError{Field: field, Err: fmt.Errorf(format, args...)}
}

// Unsupported returns the error of a field that boards have nothing like.
func Unsupported(field, format string, args ...any) *CompatError {
	return &CompatError{field, true, fmt.Errorf(format, args...)}
}

// DecodeCompat reads one JSON value of at most [MaxCompatLen] bytes. Fields that to
// has not are unsupported. The error is a [*CompatError].
func DecodeCompat(data []byte, to any) error {
	if len(data) > MaxCompatLen || !utf8.Valid(data) { // the decoder would name another member
		return BadField("json", "want at most %d bytes of UTF-8", MaxCompatLen)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to); err != nil {
		return compatError(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return BadField("json", "want one object")
	}
	return nil
}

func compatError(err error) error {
	if own, ok := errors.AsType[*CompatError](err); ok {
		return own
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return BadField(wrong.Field, "%s is not a %s in range", wrong.Value, wrong.Type)
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name, _ := strconv.Unquote(field) // as encoding/json quotes it
		return Unsupported(fmt.Sprintf("%.60s", name), "is not a field of this request")
	}
	return &CompatError{Field: "json", Err: err}
}

// RankObj names a board by the ids of its class and the value of its one dimension.
type RankObj struct {
	RankID CompatID   `json:"rankId"`
	ObjID  CompatText `json:"objId,omitempty"`
}

// CompatID is an integer from 0 that JSON has as a number or, as protobuf writes it, as a string.
type CompatID int

// UnmarshalJSON implements [json.Unmarshaler].
func (n *CompatID) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	v, err := strconv.ParseUint(strings.Trim(string(data), `"`), 10, 53)
	if err != nil {
		return wrongType[uint](data)
	}
	*n = CompatID(v)
	return nil
}

// wrongType returns an error to which the decoder adds the name of the field.
func wrongType[T any](data []byte) error {
	return &json.UnmarshalTypeError{Value: fmt.Sprintf("%.40s", data), Type: reflect.TypeFor[T]()}
}

// CompatNumber is a finite number that JSON may have as a string.
type CompatNumber float64

// UnmarshalJSON implements [json.Unmarshaler].
func (n *CompatNumber) UnmarshalJSON(data []byte) error {
	v, err := parseNumber(strings.Trim(string(data), `"`))
	if err != nil {
		return wrongType[float64](data)
	}
	*n = CompatNumber(v)
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

// CompatScore is a score from 0: an unsigned number of 64 bits in the older form. A fraction
// is cut off.
type CompatScore float64

// UnmarshalJSON implements [json.Unmarshaler].
func (s *CompatScore) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	v, err := parseNumber(text)
	whole, bad := strconv.ParseUint(text, 10, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return BadField("score", "%.40s is not a number", data)
	case v < 0:
		return Unsupported("score", "%.40s is negative", data)
	case bad == nil && whole > maxExact || bad != nil && v >= maxExact:
		return Unsupported("score", "%.40s is above 2^53, up to which scores are exact", data)
	}
	*s = CompatScore(math.Floor(v))
	return nil
}

// ShownCompatScore returns a score as the older form has it: without its fraction.
func ShownCompatScore(score float64) (uint64, error) {
	if score < 0 || score >= 1<<64 {
		return 0, Unsupported("score", "%v is not an unsigned number of 64 bits: read the board by /v1/boards", score)
	}
	return uint64(score), nil
}

// CompatText is a string that JSON may have as a number.
type CompatText string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *CompatText) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	return (*idText)(t).UnmarshalJSON(data)
}
