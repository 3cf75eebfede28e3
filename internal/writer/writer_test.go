package writer

import (
	"fmt"
	"testing"

	"rankcache/internal/testkit"
)

func TestCommandBecomesUpdate(t *testing.T) {
	h := newHouse(t, testkit.Kafka(t), nil)
	h.run(t)
	h.give(t, h.command("o1", "a"), h.command("o2", "a"), h.command("o1", "a"))
	h.await(t, "applied", 2)
	h.await(t, "duplicate", 1)
	b := h.board
	equal(t, "updates", h.updates(t, 3), []string{
		fmt.Sprintf(`{"v":1,"board":%q,"member":"a","op":"incr","delta":1,"score":1,"seq":1,"order":"o1","at":5}`, b),
		fmt.Sprintf(`{"v":1,"board":%q,"member":"a","op":"incr","delta":1,"score":2,"seq":2,"order":"o2","at":5}`, b),
		fmt.Sprintf(`{"v":1,"board":%q,"member":"a","op":"incr","delta":1,"score":1,"seq":1,"order":"o1","at":5}`, b),
	})
}
