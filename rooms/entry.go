package rooms

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"rankcache"
)

// MaxEntry is the longest JSON form of a [Entry], in bytes.
const MaxEntry = 64 << 10

// Entry is one entry of a rooms file on its own, as operators set it at run
// time. One of its fields is set. It is not changed after it was parsed.
type Entry struct {
	Room *Room
	Rule *Rule
}

// roomEntryJSON is an entry on the wire. Boards that are missing (Redis says
// which run in the room) are not the same as none.
type roomEntryJSON struct {
	UID    string              `json:"uid,omitempty"`
	Match  string              `json:"match,omitempty"`
	Mode   string              `json:"mode"`
	Boards []rankcache.BoardID `json:"boards,omitzero"`
}

// ParseEntry reads {"uid","mode","boards"} or {"match","mode"}. What a rooms
// file may not say is an error here too, as is an unknown field.
func ParseEntry(data []byte) (Entry, error) {
	if len(data) > MaxEntry {
		return Entry{}, fmt.Errorf("room entry has %d bytes, want at most %d", len(data), MaxEntry)
	}
	var j roomEntryJSON
	if err := unmarshalStrict(data, &j); err != nil {
		return Entry{}, fmt.Errorf("room entry: %w", err)
	}
	entry, err := j.entry()
	if err != nil {
		return Entry{}, fmt.Errorf("room entry: %w", err)
	}
	return entry, nil
}

func (j *roomEntryJSON) entry() (Entry, error) {
	mode, err := ParseMode(j.Mode)
	switch {
	case err != nil:
		return Entry{}, err
	case (j.UID == "") == (j.Match == ""):
		return Entry{}, errors.New("want one of uid and match")
	case j.Match != "" && j.Boards != nil:
		return Entry{}, errors.New("boards go with a uid, not with a match")
	case j.Match != "":
		rule := &Rule{Match: j.Match, Mode: mode}
		return Entry{Rule: rule}, rule.check()
	}
	room := &Room{UID: j.UID, Mode: mode, Boards: j.Boards}
	return Entry{Room: room}, room.check()
}

// unmarshalStrict reads one JSON value and nothing behind it.
func unmarshalStrict(data []byte, into any) error {
	if !utf8.Valid(data) { // encoding/json would replace the bad bytes and name another room
		return errors.New("not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%.100w", err) // it may name a foreign field of 64 KiB
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("something follows the JSON object")
	}
	return nil
}

// MarshalJSON returns the form that [ParseEntry] reads.
func (e Entry) MarshalJSON() ([]byte, error) {
	if e.Rule != nil {
		return json.Marshal(roomEntryJSON{Match: e.Rule.Match, Mode: e.Rule.Mode.String()})
	}
	return json.Marshal(roomEntryJSON{UID: e.Room.UID, Mode: e.Room.Mode.String(), Boards: e.Room.Boards})
}

// Field returns the entry's field in the hash of rooms set at run time:
// "room:<uid>" or "board:<match>".
func (e Entry) Field() string {
	if e.Rule != nil {
		return BoardField(e.Rule.Match)
	}
	return RoomField(e.Room.UID)
}

// RoomField returns the hash field of a room.
func RoomField(uid string) string { return "room:" + uid }

// BoardField returns the hash field of a board pattern.
func BoardField(match string) string { return "board:" + match }
