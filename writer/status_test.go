package writer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/rooms"
)

func (h *fixture) getStatus(t *testing.T) (st status) {
	t.Helper()
	rec := httptest.NewRecorder()
	h.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/status", nil))
	if rec.Code != http.StatusOK {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	must(t, json.Unmarshal(rec.Body.Bytes(), &st))
	return st
}

// The status has the lag of each partition, what was refused, the rules of the classes, who
// gains most, and whether Redis and Kafka answer.
func TestStatus(t *testing.T) {
	boards := testkit.Name(t)
	file, err := rooms.Parse([]byte(`classes: [{name: gift, board: "` + boards + `:{zone}", period: none, guard: {changes: 60/1m, members: 1000, action: refuse}}]`))
	must(t, err)
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) {
		o.Tiers, o.Topics.CommandPartitions, o.Process = tiers{file: file}, 1, func() any { return "of a test" }
	})
	before := h.getStatus(t)
	if before.Dependencies["redis"].State != "ok" || before.Dependencies["kafka"].State != "failing" || before.Dependencies["kafka"].Error == "" || len(before.Commands) != 0 {
		t.Errorf("before it runs: %+v", before)
	}
	stop := h.run(t)
	gift := fmt.Sprintf(`{"order":"o1","class":"gift","dims":{"zone":"7"},"member":"a","op":"incr","delta":5,"at":%d}`, h.at)
	h.produce(t, gift, "no command", "none either", h.command("o2", "a")[:20])
	h.await(t, "refused", 3)
	status, answer := h.post(t, `{"order":"o3","class":"none","dims":{},"member":"a","op":"incr","delta":5}`)
	equal(t, answer, status, http.StatusUnprocessableEntity)
	testkit.Eventually(t, testTimeout, func() error {
		st := h.getStatus(t)
		if p := st.Commands; len(p) != 1 || p[0].Lag == nil || *p[0].Lag != 0 || *p[0].Next != 4 || *p[0].End != 4 {
			return fmt.Errorf("commands %+v", p)
		}
		return nil
	})
	st := h.getStatus(t)
	equal(t, "group, process", []any{st.Group, st.Process}, []any{h.opts.Group, "of a test"})
	equal(t, "dependencies", []string{st.Dependencies["redis"].State, st.Dependencies["kafka"].State}, []string{"ok", "ok"})
	equal(t, "refused", st.Refused, []refusedCount{{"json", 3}, {"unknown_class", 1}})
	equal(t, "classes", st.Classes, []classStatus{{Name: "gift", Board: boards + ":{zone}", Period: "none", TZ: "UTC", Grace: 5, Ties: rooms.TiesMember,
		Guard: &guardStatus{60, 60, 1000, 0, 0, "refuse"}}})
	n := 0.0
	testkit.Eventually(t, testTimeout, func() error { // one that is tried twice, as on a busy machine, is a repeat and gains nothing
		top := h.getStatus(t).Gains.Top
		if len(top) == 1 && top[0].Board == rankcache.BoardID(boards+":7") && top[0].Member == "a" && top[0].Gain >= 1 && top[0].Gain <= 5+n {
			return nil
		}
		n++
		h.produce(t, fmt.Sprintf(`{"order":"more-%v","class":"gift","dims":{"zone":"7"},"member":"a","op":"incr","delta":1,"at":%d}`, n, h.at))
		return fmt.Errorf("gains %+v", top)
	})
	stop()
	if p := h.getStatus(t).Commands; len(p) != 0 {
		t.Errorf("after its end: %+v", p)
	}
}

// A token of some classes is not for the status, which is about all.
func TestStatusWithClassToken(t *testing.T) {
	h := quiet(t, nil)
	rec := httptest.NewRecorder()
	h.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(AllowClasses(t.Context(), []string{"x"}), http.MethodGet, "/v1/status", nil))
	equal(t, rec.Body.String(), rec.Code, http.StatusForbidden)
}
