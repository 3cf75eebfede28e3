package roomsync

import (
	"encoding/json"
	"testing"

	"rankcache/rooms"
)

// FuzzParseEntries holds that whatever lies in the hash is an entry under its own
// field or is told as bad, and that operators can be shown either.
func FuzzParseEntries(f *testing.F) {
	f.Add("room:88", `{"uid":"88","mode":"super-hot","boards":["a"]}`)
	f.Add("board:9_*", `{"match":"9_*","mode":"blocked"}`)
	f.Add("board:a", `{"match":"b","mode":"blocked"}`)
	f.Fuzz(func(t *testing.T, field, value string) {
		entries, bad := parseEntries(map[string]string{field: value})
		if len(entries)+len(bad) != 1 {
			t.Fatalf("%d entries and %d bad ones of one field", len(entries), len(bad))
		}
		if e, good := entries[field]; good && e.Field() != field {
			t.Fatalf("%q holds the entry of %q", field, e.Field())
		}
		l := merge(&rooms.File{}, entries, nil)
		l.inForce.Resolve(nil)
		if _, err := json.Marshal([]any{l.rooms, l.rules, bad}); err != nil {
			t.Fatal(err)
		}
	})
}
