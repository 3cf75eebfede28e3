package rankcache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// MaxRoomEntry is the longest JSON form of a [RoomEntry], in bytes.
const MaxRoomEntry = 64 << 10

// RoomEntry is one entry of a rooms file on its own, as operators set it at run
// time. One of its fields is set. It is not changed after it was parsed.
type RoomEntry struct {
	Room *Room
	Rule *BoardRule
}

// roomEntryJSON is an entry on the wire. Boards that are missing (Redis says
// which run in the room) are not the same as none.
type roomEntryJSON struct {
	UID    string    `json:"uid,omitempty"`
	Match  string    `json:"match,omitempty"`
	Mode   string    `json:"mode"`
	Boards []BoardID `json:"boards,omitzero"`
}

// ParseRoomEntry reads {"uid","mode","boards"} or {"match","mode"}. What a rooms
// file may not say is an error here too, as is an unknown field.
func ParseRoomEntry(data []byte) (RoomEntry, error) {
	if len(data) > MaxRoomEntry {
		return RoomEntry{}, fmt.Errorf("room entry has %d bytes, want at most %d", len(data), MaxRoomEntry)
	}
	var j roomEntryJSON
	if err := unmarshalStrict(data, &j); err != nil {
		return RoomEntry{}, fmt.Errorf("room entry: %w", err)
	}
	entry, err := j.entry()
	if err != nil {
		return RoomEntry{}, fmt.Errorf("room entry: %w", err)
	}
	return entry, nil
}

func (j *roomEntryJSON) entry() (RoomEntry, error) {
	mode, err := ParseMode(j.Mode)
	switch {
	case err != nil:
		return RoomEntry{}, err
	case (j.UID == "") == (j.Match == ""):
		return RoomEntry{}, errors.New("want one of uid and match")
	case j.Match != "" && j.Boards != nil:
		return RoomEntry{}, errors.New("boards go with a uid, not with a match")
	case j.Match != "":
		rule := &BoardRule{Match: j.Match, Mode: mode}
		return RoomEntry{Rule: rule}, rule.check()
	}
	room := &Room{UID: j.UID, Mode: mode, Boards: j.Boards}
	return RoomEntry{Room: room}, room.check()
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

// MarshalJSON returns the form that [ParseRoomEntry] reads.
func (e RoomEntry) MarshalJSON() ([]byte, error) {
	if e.Rule != nil {
		return json.Marshal(roomEntryJSON{Match: e.Rule.Match, Mode: e.Rule.Mode.String()})
	}
	return json.Marshal(roomEntryJSON{UID: e.Room.UID, Mode: e.Room.Mode.String(), Boards: e.Room.Boards})
}

// Field returns the entry's field in the hash of rooms set at run time:
// "room:<uid>" or "board:<match>".
func (e RoomEntry) Field() string {
	if e.Rule != nil {
		return BoardField(e.Rule.Match)
	}
	return RoomField(e.Room.UID)
}

// RoomField returns the hash field of a room.
func RoomField(uid string) string { return "room:" + uid }

// BoardField returns the hash field of a board pattern.
func BoardField(match string) string { return "board:" + match }
