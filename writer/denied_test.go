package writer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/internal/httpserve"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/rooms"
)

// A writer whose user may not ask Redis for its history: only durable classes are left out, by name, until the user may.
// Then what was left out is read again.
func TestWithoutRightToHistory(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	admin := redisClient(t, server.Addr())
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "default", "-info").Err())
	file, err := rooms.Parse([]byte(orderedClasses))
	must(t, err)
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) {
		o.Redis, o.Tiers = redisClient(t, server.Addr()), tiers{file: file}
	})
	h.run(t)
	h.makeCommandTopicFor(t) // it is longer than an order life that the right is missing
	testkit.Produce(t, h.kafka, &kgo.Record{Topic: h.opts.Names.Commands, Key: []byte(h.board), Timestamp: time.Now().Add(-2 * time.Hour),
		Value: []byte(strings.Replace(h.inZone("sets", 0, "d1", "a", `"op":"set","score":7`), "{", fmt.Sprintf(`{"at":%d,`, h.at), 1))})
	h.produce(t, h.inZone("plain", 0, "p1", "a", `"op":"incr","delta":1`))
	h.await(t, "applied", 1)
	status, answer := h.post(t, h.inZone("plain", 0, "p2", "a", `"op":"incr","delta":1`))
	equal(t, answer, status, 200)
	status, answer = h.post(t, h.inZone("sets", 0, "d2", "a", `"op":"set","score":8`))
	checkProblem(t, "durable", status, answer, httpserve.Problem{Status: 503, Code: "not_durable"})
	if !strings.Contains(answer, "+info") {
		t.Error(answer)
	}
	if err := h.Fault(); err == nil {
		t.Error("the writer is as if nothing were wrong")
	}
	equal(t, "state", h.rewinds.status(t.Context()).State, "denied")

	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "default", "+info").Err())
	testkit.Eventually(t, testTimeout, func() error {
		if score := h.client.ZScore(t.Context(), "sets:"+h.zoneOf(0), "a").Val(); score != 7 {
			return fmt.Errorf("score %v, want that of the record that was left out", score)
		}
		return nil
	})
	equal(t, "plain", h.client.ZScore(t.Context(), "plain:"+h.zoneOf(0), "a").Val(), 2.0)
	equal(t, "fault", h.Fault(), nil)
	status, answer = h.post(t, h.inZone("sets", 0, "d2", "a", `"op":"set","score":8`))
	equal(t, answer, status, 200)
}
