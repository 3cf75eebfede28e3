package localboard

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/wire"
)

// TestSameHash asks for members whose hashes are the same, on the board and not.
func TestSameHash(t *testing.T) {
	b := newBoard(t)
	first, second := sameTag(t, &b.members)
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
	got, _ := b.Standings(nil, ids, rankcache.Descending)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("standings (-want +got):\n%s", diff)
	}
	for _, s := range want {
		if got, _ := b.Standings(nil, []string{s.Member}, rankcache.Descending); got[0] != s {
			t.Errorf("standing %+v, want %+v", got[0], s)
		}
	}
}

// sameTag returns two ids of one tag. Among a million ids there are about a
// hundred such pairs.
func sameTag(t *testing.T, m *members) (string, string) {
	ids := map[uint32]string{}
	for i := range 1_000_000 {
		id := fmt.Sprint("user:", i)
		if other, ok := ids[m.tag(id)]; ok {
			return other, id
		}
		ids[m.tag(id)] = id
	}
	t.Fatal("no two ids have the same hash")
	return "", ""
}
