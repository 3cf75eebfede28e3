package roomsync

import (
	"encoding/json"
	"testing"

	"rankcache/rooms"
)

// FuzzParseEntries checks that each field of the hash is either a valid entry under
// its own field or reported as bad, and that both can be encoded for operators.
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
		m := merge(&rooms.File{}, nil, entries, nil)
		m.inForce.Resolve(nil)
		if _, err := json.Marshal([]any{m.rooms, m.rules, bad}); err != nil {
			t.Fatal(err)
		}
	})
}
