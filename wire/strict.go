package wire

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// BadJSON is the error of [DecodeStrict].
type BadJSON struct {
	Field          string // with what is around it, "boards.0.limit"; "" if the text is not such JSON at all
	Unknown, Twice bool   // the field should not be there
	Err            error
}

func (e *BadJSON) Error() string {
	if e.Field == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("field %q %v", e.Field, e.Err)
}

// Unwrap returns the cause.
func (e *BadJSON) Unwrap() error { return e.Err }

// DecodeStrict reads one JSON value that others wrote. It refuses fields that into has not, or has
// in other letters, fields that come twice, and text that is not Unicode, which
// encoding/json replaces: it would be another member. The error is a [*BadJSON].
func DecodeStrict(data []byte, into any) error {
	err := json.Unmarshal(data, into, json.RejectUnknownMembers(true))
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		bad := &BadJSON{Field: fieldOf(wrong.JSONPointer), Unknown: errors.Is(wrong.Err, json.ErrUnknownName), Err: wrong.Err}
		switch {
		case bad.Unknown:
			bad.Err = errors.New("is no field here")
		case bad.Err == nil || errors.Is(bad.Err, strconv.ErrRange) || errors.Is(bad.Err, strconv.ErrSyntax):
			bad.Err = fmt.Errorf("is not %s", wanted(wrong.GoType))
		}
		return bad
	}
	if wrong, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(wrong.Err, jsontext.ErrDuplicateName) {
			return &BadJSON{Field: fieldOf(wrong.JSONPointer), Twice: true, Err: errors.New("is there twice")}
		}
		err = fmt.Errorf("%w at byte %d", cmp.Or(wrong.Err, err), wrong.ByteOffset)
	}
	if err != nil {
		return &BadJSON{Err: err}
	}
	return nil
}

// fieldOf is where a value is, in 100 characters at most.
func fieldOf(p jsontext.Pointer) string {
	return fmt.Sprintf("%.100s", strings.Join(slices.Collect(p.Tokens()), "."))
}

// wanted names the JSON of a Go type.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float64:
		return "a number in range"
	}
	return "a whole number in range"
}
