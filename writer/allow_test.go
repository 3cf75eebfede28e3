package writer

import (
	"strings"
	"testing"

	"rankcache/internal/testkit"
)

// A request with a token for some classes changes boards of these alone, however it names them, and
// what they feed; each command of a batch is judged by itself.
func TestAllowedClasses(t *testing.T) {
	h := newFixture(t, testkit.Kfake(t).Addr(), feeding(t))
	h.run(t)
	zone := h.zone()
	day := strings.Replace(strings.Replace(inHalf("o1", zone, "a", 5, h.at), `"half"`, `"day"`, 1), `,"host":"88"`, "", 1)
	dayByID := strings.Replace(h.command("o2", "a"), string(h.board), string(h.fedBoards(t, zone, h.at)[1]), 1)
	commands := []string{day, inHalf("o1", zone, "a", 5, h.at), h.command("o1", "a"), dayByID}
	raw, err := decodeBatch([]byte(batchOf(commands...)))
	must(t, err)
	ctx := AllowClasses(t.Context(), []string{"half", "total"})
	var codes []string
	for _, post := range h.posts.doAll(ctx, raw) {
		if post.err == nil {
			codes = append(codes, "ok")
			continue
		}
		p := problemOf(post.err)
		equal(t, "status", p.Status, 403)
		codes = append(codes, p.Code)
	}
	equal(t, "commands", codes, []string{"class_not_allowed", "ok", "class_not_allowed", "class_not_allowed"})
	h.checkFed(t, zone, 1, map[string]float64{"a": 5})
	status, answer := h.post(t, day)
	if status != 200 {
		t.Error("with a token for all:", status, answer)
	}
}
