package localboard

import (
	"fmt"
	"math"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/wire"
)

// TestSameTag reads members whose ids have the same tag, on the board and not.
func TestSameTag(t *testing.T) {
	b := newBoard(t)
	first, second := idsWithSameTag(t, &b.members)
	b.Apply([]wire.Update{set(first, 1, 1), set("best", 9, 2)})
	b.Publish()
	wantStandings(t, b, []rankcache.Standing{{Member: second}, {Member: first, Score: 1, Rank: 2}})

	b.Apply([]wire.Update{set(second, 5, 3), del("best", 4)})
	b.Publish()
	wantStandings(t, b, []rankcache.Standing{{Member: second, Score: 5, Rank: 1}, {Member: first, Score: 1, Rank: 2}})

	b.Apply([]wire.Update{del(first, 5)})
	b.Publish()
	wantStandings(t, b, []rankcache.Standing{{Member: first}, {Member: second, Score: 5, Rank: 1}})
}

func wantStandings(t *testing.T, b *Board, want []rankcache.Standing) {
	t.Helper()
	var ids []string
	for _, s := range want {
		ids = append(ids, s.Member)
	}
	got, _ := standings(b, ids, rankcache.Descending)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("standings (-want +got):\n%s", diff)
	}
	for _, s := range want {
		if got, _ := standings(b, []string{s.Member}, rankcache.Descending); got[0] != s {
			t.Errorf("standing %+v, want %+v", got[0], s)
		}
	}
}

// idsWithSameTag returns two such ids. Among a million ids there are about a
// hundred such pairs.
func idsWithSameTag(t *testing.T, m *members) (string, string) {
	ids := map[uint32]string{}
	for i := range 1_000_000 {
		id := fmt.Sprint("user:", i)
		if other, ok := ids[m.tag(id)]; ok {
			return other, id
		}
		ids[m.tag(id)] = id
	}
	t.Fatal("no two ids have the same tag")
	return "", ""
}

func TestRecords(t *testing.T) {
	m := newMembers(New("x").members.seed, 0)
	var ids []string
	for n := range 300 {
		ids = append(ids, string(make([]byte, n)), fmt.Sprintf("%0*d", n+1, 1))
	}
	for _, n := range []int{wordBytes*firstBlockWords - idOffset, maxMember - 1, maxMember} {
		ids = append(ids, string(make([]byte, n)))
	}
	for _, id := range ids {
		if !m.fits(id) {
			t.Fatalf("id of %d bytes does not fit", len(id))
		}
		m.add(id)
	}
	if m.fits(string(make([]byte, maxMember+1))) {
		t.Error("an id of 64 KiB fits")
	}
	i := 0
	for h, r := range m.all {
		if r.id() != ids[i] || h >= m.endHandle || !math.IsNaN(m.of(h, r).published()) {
			t.Fatalf("record %d is %q, want %q", i, r.id(), ids[i])
		}
		if m.find(ids[i]).handle != h {
			t.Fatalf("record %d is not found", i)
		}
		i++
	}
	if i != len(ids) {
		t.Errorf("%d records, want %d", i, len(ids))
	}
}
