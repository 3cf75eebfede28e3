package writer

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"rankcache/internal/testkit/apitest"
	"rankcache/sidecar"
)

// TestLimitsAreThoseOfTheDocument: the writer and the document take the same
// commands, at both sides of each limit.
func TestLimitsAreThoseOfTheDocument(t *testing.T) {
	doc, err := apitest.Load(sidecar.OpenAPI())
	must(t, err)
	h := quiet(t, withClasses(t))
	for body, taken := range commandLimits(string(h.board)) {
		if status, answer := h.post(t, body); (status == http.StatusOK) != taken {
			t.Errorf("%.150s: the writer answers %d %s", body, status, answer)
		}
		e := apitest.Exchange{Method: http.MethodPost, Target: "/v1/scores", RequestBody: body}
		if err := doc.CheckRequest(e); (err == nil) != taken {
			t.Errorf("%.150s and the document: %v, want it taken: %v", body, err, taken)
		}
	}
}

// commandLimits returns commands and whether they are taken.
func commandLimits(board string) map[string]bool {
	x, orders := strings.Repeat, 0
	with := func(field, value string) string { // a good command but for the last value of a field
		orders++
		body := map[string]string{"board": `"` + board + `"`, "member": `"m"`, "order": fmt.Sprintf(`"o-%d"`, orders), "op": `"incr"`, "delta": "1"}
		body[field] = value
		return object(body)
	}
	op := func(op, fields string) string {
		orders++
		return fmt.Sprintf(`{"board":%q,"member":"m","order":"o-%d","op":%q%s}`, board, orders, op, fields)
	}
	class := func(fields string) string {
		orders++
		return fmt.Sprintf(`{"class":"fans","member":%q,"order":"%[1]s-%d","op":"delete",%s}`, board, orders, fields) // runs share this board
	}
	return map[string]bool{
		with("member", `"`+x("m", 128)+`"`):                 true,
		with("member", `"`+x("m", 129)+`"`):                 false,
		with("member", `"`+x("ü", 64)+`"`):                  true,
		with("member", `"`+x("ü", 65)+`"`):                  false,
		with("member", `"m\n"`):                             false,
		with("member", `""`):                                false,
		with("order", `"`+x("o", 128)+`"`):                  true,
		with("order", `"`+x("o", 129)+`"`):                  false,
		with("order", `"`+x("ü", 65)+`"`):                   false,
		with("order", `""`):                                 false,
		with("room", `"`+x("8", 64)+`"`):                    true,
		with("room", `"`+x("8", 65)+`"`):                    false,
		with("room", `"`+x("ü", 33)+`"`):                    false,
		with("room", `"8\u007f"`):                           false,
		with("room", `""`):                                  true,
		with("room", `null`):                                true,
		with("board", `"a b"`):                              false,
		with("board", `"`+x("b", 201)+`"`):                  false,
		with("board", `null`):                               false,
		with("class", `"fans"`):                             false, // and board
		with("class", `null`):                               true,
		with("class", `""`):                                 true,
		with("dims", `{}`):                                  true,
		with("dims", `null`):                                true,
		with("dims", `{"app":"7"}`):                         false,
		class(`"dims":{"app":"7","host":"8"}`):              true,
		class(`"board":null,"dims":{"app":"7","host":"8"}`): true,
		class(`"board":"","dims":{"app":"7","host":"8"}`):   true,
		class(`"dims":{"app":7,"host":"8"}`):                false,
		with("by", `null`):                                  true,
		with("by", `{}`):                                    true,
		with("by", `{"guild":7}`):                           false,
		with("by", `{"guild":""}`):                          false,
		with("by", `{"guild":"g\n"}`):                       false,
		with("by", `{"guild":"`+x("g", 129)+`"}`):           false,
		with("at", `0`):                                     true,
		with("at", `-1`):                                    false,
		with("at", `null`):                                  true,
		with("at", `1.5`):                                   false,
		with("at", `"5"`):                                   false,
		with("delta", `"1"`):                                false,
		with("delta", `null`):                               false,
		with("score", `null`):                               true,
		with("score", `"x"`):                                false,
		with("op", `"steal"`):                               false,
		with("op", `null`):                                  false,
		op("incr", ``):                                      false,
		op("incr", `,"score":1`):                            false,
		op("set", ``):                                       false,
		op("set", `,"delta":1`):                             false,
		op("set", `,"score":null`):                          false,
		op("set", `,"score":1,"delta":2`):                   true,
		op("set", `,"score":-0.5`):                          true,
		op("delete", ``):                                    true,
		op("delete", `,"att":7`):                            false,
		op("incr", `,"delta":1,"Room":null`):                false,
		op("delete", `,"score":null`):                       true,
		`null`:                                              false,
	}
}

func object(fields map[string]string) string {
	var parts []string
	for name, value := range fields {
		parts = append(parts, `"`+name+`":`+value)
	}
	return "{" + strings.Join(parts, ",") + "}"
}
