package wire

import (
	"strings"
	"testing"
)

type strictDoc struct {
	N     int               `json:"n"`
	At    int64             `json:"at"`
	Limit *int              `json:"limit"`
	Texts []string          `json:"texts"`
	Text  string            `json:"text"`
	Dims  map[string]string `json:"dims"`
}

// TestWholeNumbers: an integer is one however JSON writes it.
func TestWholeNumbers(t *testing.T) {
	for text, want := range map[string]int64{"5781.0": 5781, "1.0": 1, "-3.00": -3, "1e3": 1000, "12": 12, "0": 0, "-0": 0, "-0.0": 0, "1.5e1": 15, "9007199254740993": 1<<53 + 1} {
		for _, decode := range []func([]byte, any) error{DecodeStrict, DecodeWithoutNull} {
			var d strictDoc
			if err := decode([]byte(`{"n":`+text+`,"at":`+text+`,"limit":`+text+`}`), &d); err != nil || d.N != int(want) || d.At != want || d.Limit == nil || *d.Limit != int(want) {
				t.Errorf("%s: %+v, %v", text, d, err)
			}
		}
	}
	for _, text := range []string{"1.5", "1e300", "1e-1", `"1"`, "9223372036854775808", "9007199254740993.5", "true", "[]"} {
		var d strictDoc
		if err := DecodeStrict([]byte(`{"n":`+text+`}`), &d); err == nil || err.Error() != `field "n" is not a whole number in range` {
			t.Errorf("%s: %+v, %v", text, d, err)
		}
	}
}

// TestNull: a field that is null is as one that is not there, unless the document has null nowhere; among texts it is none of them.
func TestNull(t *testing.T) {
	for text, want := range map[string][2]string{
		`{"n":null,"at":null,"limit":null,"texts":null,"text":null,"dims":null}`: {"", `field "n" is null`},
		`{"texts":["a",null]}`:   {`field "texts.1" is null`, `field "texts.1" is null`},
		`{"dims":{"zone":null}}`: {"", `field "dims.zone" is null`},
		`null`:                   {"", "is null"},
		`{"texts":["null"]}`:     {"", ""},
	} {
		for i, decode := range []func([]byte, any) error{DecodeStrict, DecodeWithoutNull} {
			d := strictDoc{}
			err := decode([]byte(text), &d)
			if got := errText(err); got != want[i] {
				t.Errorf("%s: %q, want %q", text, got, want[i])
			}
		}
	}
}

// TestErrorsHaveNoNamesOfGo: what a record or an answer shows is about JSON.
func TestErrorsHaveNoNamesOfGo(t *testing.T) {
	for _, text := range []string{`{"v":"2"}`, `{"v":2,"board":1}`, `{"rank_id":{},"inviter_uid":1,"invitee_uid":2}`, `{"rank_id":[1]}`, `{"v":2,"delta":"1"}`, `[]`, `{"v":2,"seq":-1}`, `{"v":2,"at":1.5}`} {
		var u Update
		err := DecodeUpdate([]byte(text), &u)
		if got := errText(err); got == "" || strings.Contains(got, "Go ") || strings.Contains(got, "json: ") {
			t.Errorf("%s: %q", text, got)
		}
		var l LedgerUpdate
		if err := DecodeLedgerUpdate([]byte(text), &l); err == nil || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
