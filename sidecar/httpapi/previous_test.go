package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/internal/testkit/fixture"
)

// succession is a board whose tops follow each other.
type succession struct {
	*testing.T
	*testEnv
	server *Server
	seq    uint64
}

func newSuccession(t *testing.T) *succession {
	s := &succession{T: t, testEnv: newEnv()}
	var err error
	if s.server, err = New(s.reader(), Config{}, fixture.FailOnWarn(t), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// previous returns what the page of the board has left to the next, nil if it has left nothing.
func (s *succession) previous() *previousPage {
	v, _ := s.server.previous.boards.Load(rankcache.BoardID("local"))
	page, _ := v.(*previousPage)
	return page
}

// page publishes a top of these members, in this order, and returns how many
// look-ups of its page in the cache.
func (s *succession) page(members ...string) (joins int64) {
	s.Helper()
	s.seq++
	top := &rankcache.Top{Board: "local", State: rankcache.State{Seq: s.seq}, Members: len(members), PublishedAt: fixture.Published}
	for i, m := range members {
		top.Entries = append(top.Entries, rankcache.Entry{Member: m, Score: float64(1000 - i)})
	}
	s.Local.Head.Store(top)
	before := s.Profiles.Joins.Load()
	ctx := requestCtx("/v1/boards/local/top?profiles=1")
	s.server.handle(ctx)
	joins = s.Profiles.Joins.Load() - before
	s.check(string(ctx.Response.Body()), members)
	return joins
}

// check holds every row with the profile service's present answer.
func (s *succession) check(got string, members []string) {
	s.Helper()
	for i, m := range members {
		profile := "null"
		if m[0] != 'x' && !(strings.Contains(m, "late") && s.Profiles.Epoch.Load() == 0) {
			profile = fmt.Sprintf(`{"nick":"N-%s","v":%d}`, m, s.Profiles.Epoch.Load())
		}
		if want := fmt.Sprintf(`{"rank":%d,"member":"%s","score":%d,"profile":%s}`, i+1, m, 1000-i, profile); !strings.Contains(got, want) {
			s.Errorf("want %s in\n%s", want, got)
		}
	}
}

// TestProfilesGoFromPageToPage: profiles are looked up again only for a page with a
// new member, or with a profile that has changed or is still loading.
func TestProfilesGoFromPageToPage(t *testing.T) {
	s := newSuccession(t)
	for i, step := range []struct {
		members string
		joins   int64
	}{
		{"a b c d e", 1},
		{"a c b d e", 0},
		{"e a b c d", 0},
		{"d a b", 0},     // fewer rows
		{"d a b c e", 0}, // and as many as before
		{"d a b e f", 1}, // one has come
		{"f e d b a", 0},
		{"f e xa b a", 1}, // known to have none
		{"e f b a xa", 0},
		{"e f late b a", 1},
		{"f e late b a", 1}, // is still to come
	} {
		if got := s.page(strings.Fields(step.members)...); got != step.joins {
			t.Errorf("step %d: %d look-ups in the cache, want %d", i, got, step.joins)
		}
	}
	s.Profiles.Epoch.Add(1)
	for i, want := range []int64{1, 0} {
		if got := s.page("e", "f", "late", "b", "a"); got != want {
			t.Errorf("page %d after a change: %d look-ups in the cache, want %d", i, got, want)
		}
	}
}

// TestProfilesInUseAreAskedFor: a cache that was never asked would take them for
// forgotten.
func TestProfilesInUseAreAskedFor(t *testing.T) {
	s := newSuccession(t)
	s.page("a", "b")
	old := *s.previous()
	old.asked = time.Now().Add(-maxReuse)
	s.server.previous.boards.Store(rankcache.BoardID("local"), &old)
	for i, want := range []int64{1, 0} {
		if got := s.page("b", "a"); got != want {
			t.Errorf("page %d: %d look-ups in the cache, want %d", i, got, want)
		}
	}
}

// TestPreviousPageIsFreed: profiles stand in the newest page, and the ones before
// are not kept.
func TestPreviousPageIsFreed(t *testing.T) {
	s := newSuccession(t)
	s.page("a", "b", "c")
	first := s.previous()
	s.page("c", "b", "a")
	second := s.previous()
	for i, p := range second.profiles {
		if string(p) != string(first.profiles[2-i]) || &p[0] == &first.profiles[2-i][0] {
			t.Errorf("profile %d is %s, of the page before: %v", i, p, &p[0] == &first.profiles[2-i][0])
		}
		if cap(p) != len(p) {
			t.Errorf("profile %d: an append would write into the page", i)
		}
	}
}

// TestOldPreviousPagesAreDropped: boards that are not read any more take no memory.
func TestOldPreviousPagesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSuccession(t)
		s.page("a", "b")
		time.Sleep(maxReuse - 1)
		if s.server.previous.drop(); s.previous() == nil {
			t.Error("dropped while it may be used")
		}
		time.Sleep(time.Nanosecond)
		if s.server.previous.drop(); s.previous() != nil {
			t.Error("kept though it is too old")
		}
	})
}

func TestPreviousPageFinds(t *testing.T) {
	h := &previousPage{}
	for _, m := range []string{"a", "b", "c", "d"} {
		h.entries = append(h.entries, rankcache.Entry{Member: m})
	}
	for _, from := range []int{0, 1, 3, 4, 100} {
		for want, e := range slices.Concat(h.entries, []rankcache.Entry{{Member: "z"}}) {
			if want == len(h.entries) {
				want = -1
			}
			if got := h.find(e.Member, from); got != want {
				t.Errorf("find(%s) from %d = %d, want %d", e.Member, from, got, want)
			}
		}
	}
	if got := new(previousPage).find("a", 0); got != -1 {
		t.Errorf("found at %d of nothing", got)
	}
}
