package adminapi

import (
	"strings"
	"testing"
	"time"
)

// TestExpectRefuses: a check in a script must not pass because it was not understood.
func TestExpectRefuses(t *testing.T) {
	st := &Status{Readiness: NewReadiness(nil, someBoards), Reader: newEnv().reader(), Started: time.Now()}
	admin := Routed(New(st, st.Readiness, nil))
	for query, named := range map[string]string{
		"expect=state=starting;x":            `"argument":"expect"`,
		"expect=%zz":                         `"argument":"expect"`,
		"%zz=state":                          `"argument":"%zz"`,
		"expct=state=starting":               `"argument":"expct"`,
		"expect=state=ready&expct=x":         `"argument":"expct"`,
		"expect=state=ready&expect=nonsense": `"argument":"expect"`,
		"expect=":                            `"argument":"expect"`,
		"expect==ready":                      `"argument":"expect"`,
		"expect":                             `"argument":"expect"`,
		"Expect=state=starting":              `"argument":"Expect"`,
		strings.Repeat("n", 99) + "=1":       `"argument":"` + strings.Repeat("n", 40) + `"`,
	} {
		rec := ask(t, admin, "GET", "/status?"+query)
		if rec.Code != 400 || !strings.Contains(rec.Body.String(), named) {
			t.Errorf("%s: %d %s, want 400 with %s", query, rec.Code, rec.Body, named)
		}
	}
}

// TestExpectHolds: a path that leads nowhere never holds, whatever it is compared with.
func TestExpectHolds(t *testing.T) {
	body := map[string]any{"state": "ready", "n": 12345678, "part": 0.5, "on": true, "none": nil,
		"boards": []any{map[string]any{"board": "b0"}}, "empty": map[string]any{}}
	for expect, want := range map[string]bool{
		"state=ready": true, "n=12345678": true, "part=0.5": true, "on=true": true, "none=null": true,
		"boards.0.board=b0": true, "state=": false, "state=ready ": false,
		"boards.0zz.board=b0": false, "boards.00.board=b0": false, "boards.+0.board=b0": false, "boards.-0.board=b0": false,
		"boards.1.board=b0": false, "boards.board=b0": false, "state.x=ready": false,
		"missing=<nil>": false, "missing=null": false, "missing=": false, "none.x=null": false, "boards.9=<nil>": false,
		"none=<nil>": false, "empty=map[]": false, "boards.0=map[board:b0]": false,
	} {
		if got, err := holds(body, expect); got != want || err != nil {
			t.Errorf("%s: %v, %v, want %v", expect, got, err, want)
		}
	}
}
