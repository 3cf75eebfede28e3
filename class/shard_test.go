package class

import (
	"fmt"
	"strings"
	"testing"

	"rankcache"
)

func splitClass(t testing.TB, board, period string, n int) *Class {
	t.Helper()
	c, err := newClass(t, "x", board, period).Split(n)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestShardIDs: ids of shards are read back as what they were made from, and nothing else is taken for one.
func TestShardIDs(t *testing.T) {
	c := splitClass(t, "gift:{zone}:{period}", "30m", 16)
	whole, ok := c.Parse("gift:7:20261122-17")
	if !ok || !c.IsWhole(whole.ID) {
		t.Fatalf("%+v, %v", whole, ok)
	}
	for shard := range 16 {
		b := whole.Shard(shard)
		if want := rankcache.BoardID(fmt.Sprintf("gift:7:20261122-17.s%d", shard)); b.ID != want {
			t.Errorf("shard %d has the id %s", shard, b.ID)
		}
		again, ok := c.Parse(b.ID)
		if !ok || again.ID != b.ID || again.shard != shard+1 || again.Period != whole.Period || again.Dims["zone"] != "7" || !c.Matches(b.ID) || c.IsWhole(b.ID) {
			t.Errorf("%s: %+v, %v", b.ID, again, ok)
		}
		if next, err := again.Next(); err != nil || next.ID != ShardID("gift:7:20261122-H18", shard) && !strings.HasSuffix(string(next.ID), fmt.Sprintf(".s%d", shard)) {
			t.Errorf("after %s: %s, %v", b.ID, next.ID, err)
		}
	}
	for _, id := range []rankcache.BoardID{"gift:7:20261122-17.s16", "gift:7:20261122-17.s01", "gift:7:20261122-17.s", "gift:7:20261122-17.s-1", "gift:7:20261122-17.s+1", "gift:7:20261122-17:s1",
		"gift:7:20261122-17.s1.s1", "gift:7.s1:20261122-17", ".s1"} {
		if b, ok := c.Parse(id); ok || c.Matches(id) {
			t.Errorf("%s is %+v", id, b)
		}
	}
	plain := newClass(t, "x", "gift:{zone}:{period}", "30m")
	if _, ok := plain.Parse("gift:7:20261122-17.s1"); ok || plain.IsWhole("gift:7:20261122-17") {
		t.Error("a class that is not split has shards")
	}
}

// TestShardOfMember: which shard has a member is for ever the same, and a shard takes no other's members.
func TestShardOfMember(t *testing.T) {
	for member, want := range map[string]int{"1000123": 6, "a": 12, "b": 13, "名": 12} {
		if got := ShardOf(member, 16); got != want {
			t.Errorf("%s is on shard %d, want %d", member, got, want)
		}
	}
	whole, _ := splitClass(t, "gift:{zone}", "none", 16).Parse("gift:7")
	b, ok := whole.For("a")
	if !ok || b.ID != ShardID("gift:7", ShardOf("a", 16)) {
		t.Errorf("%s, %v", b.ID, ok)
	}
	if again, ok := b.For("a"); !ok || again.ID != b.ID {
		t.Errorf("%s, %v", again.ID, ok)
	}
	if _, ok := b.For("b"); ok {
		t.Error("a shard takes the member of another")
	}
}

// TestShardConflicts: no class can make the id of another's shard.
func TestShardConflicts(t *testing.T) {
	split := splitClass(t, "gift:{zone}", "none", 8)
	for board, period := range map[string]string{"gift:{zone}:{app}": "none", "gift:{zone}.s7": "none", "gift:{zone}:s0": "none", "gift:7:s1": "none"} {
		other := newClass(t, "b", board, period)
		for _, err := range []error{Conflict(split, other), Conflict(other, split)} {
			if err == nil || !strings.Contains(err.Error(), ".s<n>") {
				t.Errorf("%s: %v", board, err)
			}
		}
	}
	for board, period := range map[string]string{"gift:{zone}:s8": "none", "gift:{zone}:s01": "none", "gift:{zone}:{period}": "day", "like:{zone}": "none"} {
		if err := Conflict(split, newClass(t, "b", board, period)); err != nil {
			t.Errorf("%s: %v", board, err)
		}
	}
	for _, n := range []int{-1, 0, 1, 65} {
		if _, err := newClass(t, "x", "gift", "none").Split(n); err == nil {
			t.Errorf("%d shards", n)
		}
	}
	long := "gift:{zone}:{a}:{b}"
	if _, err := newClass(t, "x", long, "none").Split(2); err == nil {
		t.Error("an id that is too long with its shard")
	}
}
