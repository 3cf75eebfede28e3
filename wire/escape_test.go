package wire_test

import (
	"strings"
	"testing"

	"rankcache"
	"rankcache/internal/masters"
	"rankcache/wire"
)

// Names of plain ids stay what they were; no two other ids have the same, and Kafka and file systems take them.
func TestNamesOfTopicsAndFiles(t *testing.T) {
	n := wire.DefaultNames()
	for id, want := range map[rankcache.BoardID]string{"1_2_3": "1_2_3", "lb:x2f": "lb.x2f", "a_x2fb": "a_x2fb", "a/b": "a_x2fb", "a_x2f/b": "a_x5fx2f_x2fb", "{eu}": "_x7beu_x7d"} {
		if got := n.Topic(id); got != "update_cache_"+want {
			t.Errorf("topic of %s is %s, want %s", id, got, want)
		}
		other := strings.ReplaceAll(string(id), ":", ".")
		if back, ok := wire.UnescapeTopic(want); !wire.IsPlain(id) && (!ok || back != other) {
			t.Errorf("%s is the topic of %s, %v; want %s", want, back, ok, other)
		}
	}
	long := rankcache.BoardID(strings.Repeat("/", rankcache.MaxBoardLen))
	if topic, file := n.Topic(long), wire.FileName(long); len(topic) > 249 || len(file) > 200 || topic == n.Topic(long[1:]) || file == wire.FileName(long[1:]) {
		t.Errorf("names of a long id: %s, %s", topic, file)
	}
	if _, ok := wire.UnescapeTopic(strings.TrimPrefix(n.Topic(long), n.UpdatePrefix)); ok {
		t.Error("a digest is taken for an id")
	}
	if wire.FileName("a:b") != "a:b" || wire.FileName("../b") != "..%x2fb" {
		t.Error(wire.FileName("a:b"), wire.FileName("../b"))
	}
}

// The companions of a board are in its slot, whatever the id, and its own keys are no boards.
func TestCompanionsAreInTheBoardsSlot(t *testing.T) {
	n := wire.DefaultNames()
	for _, id := range []rankcache.BoardID{"1_2_3", "lb:{eu}:weekly", "{a}", "lb/{a}{b}#c"} {
		keys := []string{n.MetaKey(id), n.OrdersKey(id, 1, 2), n.AdopterKey(id), n.LadderKey(id)}
		for _, c := range wire.Companions() {
			keys = append(keys, n.CompanionKey(id, c))
		}
		for _, key := range keys {
			if masters.Slot(key) != masters.Slot(n.BoardKey(id)) {
				t.Errorf("%s is in another slot than its board %s", key, id)
			}
			if b, ok := n.BoardOfKey(key); ok {
				t.Errorf("%s passes for the board %s", key, b)
			}
		}
	}
	if got := n.MetaKey("lb:{eu}:weekly"); got != "rankcache:meta:lb:{eu}:weekly" {
		t.Error(got)
	}
	if got := n.OrdersKey("lb:{eu}:weekly", 1, 2); got != "rankcache:orders:1.2:lb:{eu}:weekly" {
		t.Error(got)
	}
}

func TestUnfitKey(t *testing.T) {
	n := wire.DefaultNames()
	n.Board = "lb:<board>"
	for key, unfit := range map[string]bool{"lb:a b": true, "lb:": true, "lb:a": false, "other b": false, "rankcache:x y": false} {
		if err := n.UnfitKey(key); (err != nil) != unfit {
			t.Errorf("%s: %v", key, err)
		}
	}
}
