package live

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/internal/testkit/fixture"
	"rankcache/sidecar"
)

// FuzzDiff makes versions of pages that follow from the input. A client at any of them that
// takes what is sent for the newest must have its page.
func FuzzDiff(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte{0, 8, 16, 255, 24, 3, 3, 131})
	f.Fuzz(func(t *testing.T, changes []byte) {
		if len(changes) > 2*history {
			return
		}
		var profiles fixture.Profiles
		reader, err := sidecar.NewReader(sidecar.Config{Tiers: fixture.Tiers(""), Origin: fixture.NewOrigin(1, 1), Profiles: &profiles}, nil)
		if err != nil {
			t.Fatal(err)
		}
		hub, err := New(reader, Config{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := newPublisher(hub, Key{Board: board, Limit: 8, Profiles: true})
		page := &rankcache.Answer{}
		pages := make(map[uint64]string) // as they were sent, by version
		for i, c := range changes {
			page = nextPage(page, uint64(i+1), c)
			if c == 255 {
				profiles.Epoch.Add(1)
			}
			p.take(t.Context(), page)
			newest := p.state.Load().version
			pages[newest.n] = string((&Event{version: newest}).SSE())
			compareFromAll(t, newest, pages)
		}
	})
}

// nextPage returns the page after a change.
func nextPage(old *rankcache.Answer, seq uint64, change byte) *rankcache.Answer {
	a := *old
	a.State = rankcache.State{Run: 5, Seq: seq}
	a.At = time.UnixMilli(int64(seq))
	a.Entries = append([]rankcache.Entry(nil), old.Entries...)
	at := int(change>>3) % 8
	switch n := len(a.Entries); {
	case change&7 == 0 && n > 0:
		a.Entries = a.Entries[:n-1]
	case change&7 == 1:
		a.Form = rankcache.ScoreInteger - a.Form
	case at < n:
		a.Entries[at] = rankcache.Entry{Member: fixture.Member(int(change & 7)), Score: float64(seq) / 2}
	case n < 8:
		a.Entries = append(a.Entries, rankcache.Entry{Member: fixture.Member(n + 10), Score: -0.25})
	}
	a.Members = len(a.Entries)
	return &a
}

func compareFromAll(t *testing.T, newest *version, pages map[uint64]string) {
	t.Helper()
	want := decoded(t, pages[newest.n])
	for n := newest.since; n < newest.n; n++ {
		if !newest.diffable(n) {
			continue
		}
		got, update := decoded(t, pages[n]), decoded(t, string((&Event{version: newest, base: n}).SSE()))
		if update["base"] != nil {
			applyDiff(got, update)
		} else {
			got = update
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("from %d to %d (-want +got):\n%s", n, newest.n, diff)
		}
	}
}

func decoded(t *testing.T, event string) (data map[string]any) {
	t.Helper()
	fields := parseEvent(t, event)
	if err := json.Unmarshal([]byte(fields["data"]), &data); err != nil {
		t.Fatal(err)
	}
	if data["id"] != fields["id"] {
		t.Fatal(fmt.Sprint(fields))
	}
	return data
}
