package writer

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"rankcache/internal/httpserve"
	"rankcache/internal/testkit"
	"rankcache/wire"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// change is a post of one point for a member.
func (h *fixture) change(order, board, member string) string {
	return fmt.Sprintf(`{"order":%q,"board":"%s%s","member":%q,"op":"incr","delta":1}`, order, h.board, board, member)
}

// TestMemberChanges: posts for one member are counted over all boards; one too many changes nothing, unless its order is known.
func TestMemberChanges(t *testing.T) {
	t.Parallel()
	h := quiet(t, func(o *Options) { o.MemberChanges = 3 })
	noon := time.Now().Truncate(time.Hour).Add(10 * time.Second)
	h.applier.now = func() time.Time { return noon }
	flood, other := testkit.Name(t), testkit.Name(t)
	for i := range 3 {
		status, answer := h.post(t, h.change(fmt.Sprint("o", i), strconv.Itoa(i), flood))
		equal(t, answer, status, http.StatusOK)
	}
	rec := h.send(h.change("o3", "3", flood), "Content-Type", "application/json")
	checkProblem(t, "one too many", rec.Code, rec.Body.String(), httpserve.Problem{Status: http.StatusTooManyRequests, Code: "member_changes"})
	equal(t, "Retry-After", rec.Header().Get("Retry-After"), "51")
	equal(t, "its board", h.client.Exists(t.Context(), string(h.board)+"3").Val(), int64(0))
	if status, answer := h.post(t, h.change("o0", "0", flood)); status != http.StatusOK || !strings.Contains(answer, `"duplicate":true`) {
		t.Errorf("a repeat is answered with %d %s", status, answer)
	}
	status, answer := h.post(t, h.change("o", "0", other))
	equal(t, answer, status, http.StatusOK)
	equal(t, "refused", testutil.ToFloat64(h.metrics.rates.WithLabelValues("refused")), 1.0)
	if ttl := h.client.TTL(t.Context(), wire.MemberChangesKey(strconv.FormatInt(noon.Unix()/60, 10), flood)).Val(); ttl <= 0 || ttl > 2*time.Minute {
		t.Error("the counter expires after", ttl)
	}
	noon = noon.Add(time.Minute)
	status, answer = h.post(t, h.change("o3", "3", flood))
	equal(t, answer, status, http.StatusOK)
}

// TestMemberChangesInBatches: of the posts of one request those that fit pass.
func TestMemberChangesInBatches(t *testing.T) {
	t.Parallel()
	h := quiet(t, func(o *Options) { o.MemberChanges = 2 })
	member := testkit.Name(t)
	body := fmt.Sprintf(`{"commands":[%s,%s,%s]}`, h.change("a", "", member), h.change("b", "", member), h.change("c", "", member))
	answer, problem, ok := h.PostBatch(t.Context(), []byte(body))
	if !ok || strings.Count(string(answer), `"result"`) != 2 || strings.Count(string(answer), `"member_changes"`) != 1 {
		t.Errorf("%s %+v", answer, problem)
	}
}

// TestMemberChangesAreOpen: a Redis that does not count limits nobody.
func TestMemberChangesAreOpen(t *testing.T) {
	t.Parallel()
	h := quiet(t, func(o *Options) { o.MemberChanges = 1 })
	member := testkit.Name(t)
	key := wire.MemberChangesKey(strconv.FormatInt(h.applier.now().Unix()/60, 10), member)
	must(t, h.client.LPush(t.Context(), key, "no counter").Err())
	t.Cleanup(func() { h.client.Del(t.Context(), key) })
	for i := range 3 {
		status, answer := h.post(t, h.change(fmt.Sprint("o", i), "", member))
		equal(t, answer, status, http.StatusOK)
	}
	equal(t, "uncounted", testutil.ToFloat64(h.metrics.rates.WithLabelValues("uncounted")), 3.0)
}
