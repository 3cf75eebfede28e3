package sidecar

import (
	"strings"
	"testing"
)

func TestAdminTop(t *testing.T) {
	w := newWorld()
	st := &Status{Readiness: NewReadiness(nil, nil), Reader: w.reader()}
	admin := NewAdmin(st, st.Readiness, nil)
	for path, want := range map[string]struct {
		status int
		part   string
	}{
		"/boards/local/top":           {200, `"source":"local","seq":917,"total":57000`},
		"/boards/local/top?limit=2":   {200, `"limit":2,"entries":[{"rank":1,"member":"m000000","score":974000,"profile":`},
		"/boards/hot/top":             {200, `"source":"hot"`},
		"/boards/filling/top":         {200, `"source":"redis"`},
		"/boards/shut/top":            {403, `"code":"blocked"`},
		"/boards/a%20b/top":           {400, `"argument":"board"`},
		"/boards/local/top?limit=0":   {400, `"argument":"limit"`},
		"/boards/local/top?limit=501": {400, `"argument":"limit"`},
		"/boards/local/top?limit=x":   {400, `"argument":"limit"`},
	} {
		rec := ask(t, admin, "GET", path)
		if rec.Code != want.status || !strings.Contains(rec.Body.String(), want.part) {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
		if rec.Code == 200 && (rec.Header().Get("Rankcache-Age-Ms") == "" || rec.Header().Get("Rankcache-Source") == "") {
			t.Errorf("%s: header %v, want age and source", path, rec.Header())
		}
	}
}

// TestOperatorsDoNotMakeBoardsHot: a page that is looked at asks once a second.
func TestOperatorsDoNotMakeBoardsHot(t *testing.T) {
	w := newWorld()
	st := &Status{Readiness: NewReadiness(nil, nil), Reader: w.reader()}
	admin := NewAdmin(st, st.Readiness, nil)
	for _, path := range []string{"/boards/hot/top", "/boards/filling/top", "/status/hot"} {
		if rec := ask(t, admin, "GET", path); rec.Code != 200 {
			t.Fatalf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
	if n := w.hot.reads.Load(); n != 0 {
		t.Errorf("%d reads of operators count as the app's", n)
	}
}
