package roomsync

import (
	"encoding/json"
	"testing"

	"rankcache"
	"rankcache/rooms"
)

// FuzzParseEntries checks that each field of the hash is either a valid entry under
// its own field or reported as bad, and that both can be encoded for operators.
func FuzzParseEntries(f *testing.F) {
	f.Add("room:88", `{"uid":"88","mode":"super-hot","boards":["a"]}`)
	f.Add("board:9_*", `{"match":"9_*","mode":"blocked"}`)
	f.Add("board:a", `{"match":"b","mode":"blocked"}`)
	f.Add("bypass:a", `{"board":"a","by":"x","from":"2026-11-22T18:00:00Z","until":"2026-11-22T18:10:00Z"}`)
	f.Add("bypass:*", `{"all":true,"by":"x","from":"2026-11-22T18:00:00Z","until":"2026-11-22T18:10:00Z"}`)
	f.Fuzz(func(t *testing.T, field, value string) {
		d, bad := (&files{check: Config{CheckBoard: rankcache.BoardID.Check}.checkFile}).parse(map[string]string{field: value})
		if len(d.entries)+len(d.bypasses)+len(bad) != 1 {
			t.Fatalf("%d entries, %d bypasses and %d bad ones of one field", len(d.entries), len(d.bypasses), len(bad))
		}
		if e, good := d.entries[field]; good && e.Field() != field {
			t.Fatalf("%q holds the entry of %q", field, e.Field())
		}
		if b, good := d.bypasses[field]; good && b.Field() != field {
			t.Fatalf("%q holds the bypass of %q", field, b.Field())
		}
		m := merge(&rooms.File{}, nil, d.entries, nil)
		m.inForce.Resolve(nil)
		if _, err := json.Marshal([]any{m.rooms, m.rules, bad, d.bypasses}); err != nil {
			t.Fatal(err)
		}
	})
}
