package writer

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache/internal/testkit"
)

// A post of a durable class is a record, too, and both find that Redis refuses it. It is one refused command.
func TestRefusedDurablePostCountsOnce(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.RealKafka(t), durable(t))
	h.run(t)
	status, answer := h.post(t, h.in("counts", "o1"))
	equal(t, answer, status, 200)
	status, answer = h.post(t, strings.Replace(h.in("counts", "o1"), `"delta":1`, `"delta":2`, 1))
	equal(t, answer, status, 409)
	status, answer = h.post(t, h.in("counts", "last")) // of the same member, so behind the other in the topic
	equal(t, answer, status, 200)
	h.await(t, "duplicate", 2)
	equal(t, "counted", testutil.ToFloat64(h.metrics.refused.WithLabelValues("order_conflict")), 1.0)
	equal(t, "commands", h.count("refused"), 1)
	for _, record := range testkit.Records(t, h.kafka, h.opts.Names.Refused, 1) {
		var r refusedRecord
		must(t, json.Unmarshal(record.Value, &r))
		equal(t, "reason, posted", []any{r.Reason, r.Source.HTTP}, []any{"order_conflict", false})
	}
}
