package wire

import (
	"cmp"
	"errors"
	"fmt"
	"math"
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

// DecodeStrict reads one JSON value that others wrote. It refuses unknown, misspelt and doubled fields, nulls in lists
// of texts, and text that is not Unicode. The error is a [*BadJSON].
func DecodeStrict(data []byte, into any) error {
	return decode(data, into, strict)
}

// DecodeWithoutNull is DecodeStrict for what may have null nowhere.
func DecodeWithoutNull(data []byte, into any) error { return decode(data, into, withoutNull) }

var (
	whole       = json.JoinUnmarshalers(json.UnmarshalFromFunc(readWhole[int]), json.UnmarshalFromFunc(readWhole[int64]))
	strict      = json.JoinOptions(json.RejectUnknownMembers(true), json.WithUnmarshalers(json.JoinUnmarshalers(whole, json.UnmarshalFromFunc(refuseNullInList))))
	withoutNull = json.JoinOptions(json.RejectUnknownMembers(true), json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(readTexts), json.UnmarshalFromFunc(refuseNull), whole)))
)

var (
	errNull  = errors.New("is null")
	errWhole = errors.New("is not a whole number in range")
)

// readWhole reads an integer however it is written: to JSON, 5781.0 is one.
func readWhole[T int | int64](from *jsontext.Decoder, n *T) error {
	if from.PeekKind() != '0' {
		return json.SkipFunc
	}
	text, err := from.ReadValue()
	if err != nil {
		return err
	}
	v, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(text), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return errWhole
		}
		v = int64(f)
	}
	*n = T(v)
	return nil
}

// readTexts reads the strings of a list, which would else be half of the time of a batch of 500 members.
func readTexts(from *jsontext.Decoder, texts *[]string) error {
	if from.PeekKind() != '[' {
		return json.SkipFunc
	}
	_, err := from.ReadToken()
	for err == nil && from.PeekKind() == '"' {
		var text jsontext.Token
		if text, err = from.ReadToken(); err == nil {
			*texts = append(*texts, text.String())
		}
	}
	if err == nil && from.PeekKind() != ']' { // no string: the error is that of any other value
		var text string
		err = json.UnmarshalDecode(from, &text)
	}
	if err == nil {
		_, err = from.ReadToken()
	}
	return err
}

func refuseNull(from *jsontext.Decoder, _ any) error {
	if from.PeekKind() == 'n' {
		return errNull
	}
	return json.SkipFunc
}

// refuseNullInList has a null refused that would be an empty text: a field that is null is as one that is not there.
func refuseNullInList(from *jsontext.Decoder, text *string) error {
	if depth := from.StackDepth(); depth > 0 {
		if in, _ := from.StackIndex(depth); in == '[' {
			return refuseNull(from, text)
		}
	}
	return json.SkipFunc
}

func decode(data []byte, into any, options json.Options) error {
	return badJSON(json.Unmarshal(data, into, options))
}

// badJSON returns an error of the decoder as a [*BadJSON], without the names of Go's types.
func badJSON(err error) error {
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
