package wire

import (
	"errors"
	"strings"
	"testing"

	"rankcache"
)

func TestDefaultNames(t *testing.T) {
	n := DefaultNames()
	if err := n.Check(); err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		n.BoardKey("1_2_3"):                        "1_2_3",
		n.MetaKey("1_2_3"):                         "{1_2_3}:meta",
		n.OrdersKey("1_2_3", 1, 3):                 "{1_2_3}:orders:1.3",
		n.AdopterKey("1_2_3"):                      "{1_2_3}:adopter",
		n.RoomKey("88"):                            "rankcache:room:88:boards",
		n.HotKey("crs-1"):                          "rankcache:hot:crs-1",
		n.ReadsKey("crs-1"):                        "{rankcache:states:crs-1}:reads",
		n.Topic("a:b.c"):                           "update_cache_a.b.c",
		n.ClassTopic("gift-half-hour", "20261122"): "update_class_gift-half-hour.20261122",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestBoardOfKey(t *testing.T) {
	own := DefaultNames()
	own.Board, own.Meta, own.Orders = "rank:{<board>}:z", "rank:{<board>}:n", "rank:{<board>}:o:<bucket>"
	for _, n := range []Names{DefaultNames(), own} {
		for _, b := range []rankcache.BoardID{"1_2_3", "a:b", "x.y-z"} {
			if got, ok := n.BoardOfKey(n.BoardKey(b)); !ok || got != b {
				t.Errorf("%s: got %q %v", n.BoardKey(b), got, ok)
			}
			for _, key := range []string{n.MetaKey(b), n.OrdersKey(b, 1, 3), n.AdopterKey(b), n.Readopt, n.RoomKey("88"), n.HotKey("i"), n.StatesKey("i"), n.KeeperKey("i"), n.ReadsKey("i"), n.Rooms, n.Ends, n.Controller, n.AbsentTopics, "", "a b", strings.Repeat("x", 300)} {
				if got, ok := n.BoardOfKey(key); ok {
					t.Errorf("key %q taken for board %q", key, got)
				}
			}
		}
	}
}

// An id whose key is, or begins like, another one is no board's, whatever the keys are called.
func TestOwnKeysAreNoBoards(t *testing.T) {
	other := DefaultNames()
	other.Board, other.Meta, other.Companion = "lb:<board>", "lb:meta:<board>", "lb:<board>:<companion>"
	other.Rooms, other.Ends, other.Room, other.Hot = "lb:rooms", "lb:ends", "lb:room:<uid>", "lb:<instance>:hot"
	for _, c := range []struct {
		names Names
		bad   string
		good  string
	}{
		{DefaultNames(), "rankcache:rooms rankcache:readopt rankcache:ends rankcache:room-ends rankcache:controller rankcache:topics:absent rankcache:room:88:boards rankcache:hot:redis " +
			"rankcache:rooms:1 rankcache:later", "1_2_3 rooms rankcache_1"},
		{other, "rooms ends rooms:2 room:88 meta:7 7:guard 7:scores redis:hot rankcache:rooms", "rooms2 ends_1 room meta 7:score lb:rooms"},
	} {
		if err := c.names.Check(); err != nil {
			t.Fatal(err)
		}
		for id := range strings.FieldsSeq(c.bad) {
			if err := c.names.CheckBoard(rankcache.BoardID(id)); !errors.Is(err, rankcache.ErrBoard) || !strings.Contains(err.Error(), "rankcache's own") {
				t.Errorf("%s: %v", id, err)
			}
			if b, ok := c.names.BoardOfKey(c.names.BoardKey(rankcache.BoardID(id))); ok {
				t.Errorf("key of %s taken for that of %s", id, b)
			}
		}
		for id := range strings.FieldsSeq(c.good) {
			if err := c.names.CheckBoard(rankcache.BoardID(id)); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
	}
}

func TestNamesCheck(t *testing.T) {
	n := DefaultNames()
	n.Orders = "{<board>}:orders"
	if err := n.Check(); err == nil || !strings.Contains(err.Error(), "<bucket>") {
		t.Errorf("got %v", err)
	}
	n = DefaultNames()
	n.Rooms = ""
	if err := n.Check(); err == nil || !strings.Contains(err.Error(), "rooms key") {
		t.Errorf("got %v", err)
	}
	n = DefaultNames()
	n.Commands = "a b"
	if err := n.Check(); err == nil || !strings.Contains(err.Error(), "topic") {
		t.Errorf("got %v", err)
	}
}
