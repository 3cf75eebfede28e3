package profile

import (
	"fmt"
	"hash/maphash"
	"testing"
)

func openStore(t testing.TB, budget int64) *store {
	t.Helper()
	s := newStore(Options{Budget: budget}, func() {})
	s.seed = testSeed
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

var testSeed = maphash.MakeSeed()

func keyOf(member string) uint64 { return maphash.String(testSeed, member) }

func newItem(version uint32, member string) item {
	return item{keyOf(member), newEntry(version, 0, member, fmt.Appendf(nil, `{"v":%d}`, version))}
}

func noRefusal(t testing.TB) func(int) {
	return func(i int) { t.Errorf("item %d refused although there is room", i) }
}

// Used as it comes, ristretto dropped 78 % of a burst of Sets, and a Get right
// after the first Set of a key missed.
func TestPutIsNeverDroppedAndSeenAtOnce(t *testing.T) {
	s := openStore(t, 64<<20)
	for n := 0; n < 50_000; n += 100 {
		items := make([]item, 100)
		for i := range items {
			items[i] = newItem(1, fmt.Sprint(n+i))
		}
		s.put(items, noRefusal(t))
		for i := range items {
			if _, ok := s.get(items[i].key, fmt.Sprint(n+i)); !ok {
				t.Fatalf("member %d is not there right after put", n+i)
			}
		}
	}
}

// Used as it comes, ristretto keeps the older of two quick Sets of a new key.
func TestNewerEntryStays(t *testing.T) {
	for _, tt := range []struct {
		name     string
		versions [][]uint32 // batches
		want     uint32
	}{
		{"one after the other", [][]uint32{{1}, {2}}, 2},
		{"older comes late", [][]uint32{{2}, {1}}, 2},
		{"older comes late in one batch", [][]uint32{{2, 1}}, 2},
		{"versions wrap", [][]uint32{{1<<32 - 1}, {0}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := openStore(t, 4<<20)
			for _, batch := range tt.versions {
				var items []item
				for _, v := range batch {
					items = append(items, newItem(v, "a"))
				}
				s.put(items, noRefusal(t))
			}
			if e, ok := s.get(keyOf("a"), "a"); !ok || e.head.version != tt.want {
				t.Errorf("version %v (found %v), want %d", e, ok, tt.want)
			}
		})
	}
}

func TestMembersWithTheSameKeyAreToldApart(t *testing.T) {
	s := openStore(t, 4<<20)
	s.put([]item{{7, newItem(1, "alice").e}}, noRefusal(t))
	if _, ok := s.get(7, "bobby"); ok {
		t.Error("bobby was given alice's profile")
	}
	if s.remove(7, "bobby") {
		t.Error("dropping bobby dropped alice")
	}
	if !s.remove(7, "alice") {
		t.Error("alice was not there to be dropped")
	}
	if _, ok := s.get(7, "alice"); ok {
		t.Error("alice is there after remove")
	}
}

func TestEntryKeepsWhatItIsGiven(t *testing.T) {
	json := []byte(`{"a":1}`)
	e := newEntry(3, 35*365*24*3600e9/2, "12", json)
	json[1] = 'X'
	if got := string(e.profile()); got != `{"a":1}` || !e.is("12") || e.is("1") || e.is("13") {
		t.Errorf("profile %q of 12: %v, of 1: %v", got, e.is("12"), e.is("1"))
	}
	if e.softExpiry() != 35*365*24*3600e9/2 {
		t.Errorf("soft %v, want 17.5 years", e.softExpiry())
	}
	if want := headerLen + 2 + len(json); e.size() != want || e.words() != (want+3)/4 {
		t.Errorf("size %d, %d words for %d bytes", e.size(), e.words(), want)
	}
	if p := e.profile(); cap(p) != len(p) {
		t.Error("an append would write behind the profile")
	}
}
