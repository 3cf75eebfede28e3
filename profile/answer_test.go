package profile

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

var asked = []string{"1", "2", "ü\"x"}

func TestDecodeAnswer(t *testing.T) {
	for _, tt := range []struct{ name, answer, want string }{
		{"all", `{"profiles":{"1":{"a":1},"2":{},"ü\"x":{"b":"ü"}}}`, `{"a":1}|{}|{"b":"ü"}`},
		{"byte for byte", "\n{ \"profiles\" : {\"1\": { \"a\" :\t1.0e2,\n\"a\":2} } }\n", "{ \"a\" :\t1.0e2,\n\"a\":2}||"},
		{"escaped key", `{"profiles":{"\u0031":{}}}`, `{}||`},
		{"none known", `{"profiles":{}}`, `||`},
		{"other fields", `{"took":[1,{"x":null}],"profiles":{"2":{}},"v":2}`, `|{}|`},
		{"one bad profile", `{"profiles":{"1":null,"2":{}}}`, `value|{}|`},
		{"bad profiles", `{"profiles":{"1":[{}],"2":"{}","ü\"x":7}}`, `value|value|value`},
		{"not UTF-8", "{\"profiles\":{\"1\":{\"a\":\"\xff\"}}}", `value||`},
		{"too long a profile", `{"profiles":{"1":{"a":"` + strings.Repeat("x", 100) + `"},"2":{}}}`, `size|{}|`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answers := make([]Answer, len(asked))
			if err := decodeAnswer(iotest.OneByteReader(strings.NewReader(tt.answer)), asked, answers, 100); err != nil {
				t.Fatal(err)
			}
			if got := show(answers); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func show(answers []Answer) string {
	var parts []string
	for _, a := range answers {
		if a.Err != nil {
			parts = append(parts, kindOf(a.Err))
		} else {
			parts = append(parts, string(a.JSON))
		}
	}
	return strings.Join(parts, "|")
}

func TestDecodeBadAnswer(t *testing.T) {
	for _, tt := range []struct{ name, answer, kind string }{
		{"empty", ``, KindJSON},
		{"HTML", `<html><body>502 Bad Gateway</body></html>`, KindJSON},
		{"text", `not found`, KindJSON},
		{"cut in a profile", `{"profiles":{"1":{"a":1`, KindJSON},
		{"cut in a key", `{"profiles":{"1`, KindJSON},
		{"cut between", `{"profiles":{"1":{}`, KindJSON},
		{"cut at the end", `{"profiles":{"1":{}}`, KindJSON},
		{"bad syntax", `{"profiles":{"1":{},}}`, KindJSON},
		{"bad value", `{"profiles":{"1":{'a':1}}}`, KindJSON},
		{"key is no string", `{"profiles":{1:{}}}`, KindJSON},
		{"more behind", `{"profiles":{}}{"profiles":{}}`, KindJSON},
		{"rubbish behind", `{"profiles":{}}]`, KindJSON},
		{"list", `[{"1":{}}]`, KindShape},
		{"null", `null`, KindShape},
		{"string", `"profiles"`, KindShape},
		{"no profiles", `{"error":"busy"}`, KindShape},
		{"wrong case", `{"Profiles":{}}`, KindShape},
		{"profiles is a list", `{"profiles":[]}`, KindShape},
		{"profiles is null", `{"profiles":null}`, KindShape},
		{"member twice", `{"profiles":{"1":{},"1":{}}}`, KindDuplicate},
		{"member twice, escaped", `{"profiles":{"1":{},"\u0031":{}}}`, KindDuplicate},
		{"profiles twice", `{"profiles":{},"profiles":{"1":{}}}`, KindDuplicate},
		{"unasked", `{"profiles":{"1":{},"3":{}}}`, KindUnasked},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := decodeAnswer(strings.NewReader(tt.answer), asked, make([]Answer, len(asked)), 100)
			if _, ok := errors.AsType[*BadAnswer](err); !ok || kindOf(err) != tt.kind {
				t.Errorf("%v, want a BadAnswer of kind %s", err, tt.kind)
			}
		})
	}
}

func TestReaderErrorIsNotABadAnswer(t *testing.T) {
	r := io.MultiReader(strings.NewReader(`{"profiles":{"1":`), iotest.ErrReader(errors.New("connection reset")))
	err := decodeAnswer(r, asked, make([]Answer, len(asked)), 100)
	if _, ok := errors.AsType[*BadAnswer](err); ok || err == nil {
		t.Errorf("%v, want the reader's error", err)
	}
}

func TestLimitReader(t *testing.T) {
	const answer = `{"profiles":{"1":{}}}`
	for _, tt := range []struct {
		limit int64
		ok    bool
	}{{int64(len(answer)) + 1, true}, {int64(len(answer)) - 1, false}, {1, false}} {
		err := decodeAnswer(&limitReader{strings.NewReader(answer), tt.limit}, asked, make([]Answer, len(asked)), 100)
		if tt.ok != (err == nil) || !tt.ok && kindOf(err) != KindSize {
			t.Errorf("limit %d: %v", tt.limit, err)
		}
	}
}

// Of any answer of a service, only JSON objects of UTF-8 are passed on: bytes of the
// answer itself, for requested members.
func FuzzDecodeAnswer(f *testing.F) {
	for _, seed := range []string{`{"profiles":{"1":{"a":1},"2":{}}}`, `{"profiles":{"1":{},"1":{}}}`, `[]`, `<html>`,
		`{"x":[1,2,{"y":"z"}],"profiles":{"\u0031":{"a":"\ud800"}}}`, "{\"profiles\":{\"1\":{\"a\":\"\xff\"}}} "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		answers := make([]Answer, len(asked))
		if decodeAnswer(strings.NewReader(answer), asked, answers, 64) != nil {
			return
		}
		if !json.Valid([]byte(answer)) {
			t.Errorf("bad JSON accepted: %q", answer)
		}
		for _, a := range answers {
			if a.JSON == nil {
				continue
			}
			if !json.Valid(a.JSON) || !utf8.Valid(a.JSON) || a.JSON[0] != '{' || len(a.JSON) > 64 || !strings.Contains(answer, string(a.JSON)) {
				t.Errorf("passed on %q of %q", a.JSON, answer)
			}
		}
	})
}
