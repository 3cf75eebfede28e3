package rooms

import (
	"encoding/json"
	"errors"
	"fmt"

	"rankcache"
	"rankcache/wire"
)

const MaxEntry = 64 << 10 // the longest JSON form of an [Entry], in bytes

// Entry is one room or rule set at run time: exactly one field is set. It is immutable after parsing.
type Entry struct {
	Room *Room
	Rule *Rule
}

// entryJSON is an entry on the wire. Missing boards (those in the room's Redis set) differ from an empty list (none).
type entryJSON struct {
	UID    string              `json:"uid,omitempty"`
	Match  string              `json:"match,omitempty"`
	Mode   string              `json:"mode"`
	Boards []rankcache.BoardID `json:"boards,omitzero"`
}

// ParseEntry parses {"uid","mode","boards"} or {"match","mode"} as in a rooms file. An unknown field is an error.
func ParseEntry(data []byte) (Entry, error) {
	if len(data) > MaxEntry {
		return Entry{}, fmt.Errorf("room entry has %d bytes, want at most %d", len(data), MaxEntry)
	}
	var j entryJSON
	if err := wire.DecodeStrict(data, &j); err != nil {
		return Entry{}, fmt.Errorf("room entry: %w", err)
	}
	entry, err := j.entry()
	if err != nil {
		return Entry{}, fmt.Errorf("room entry: %w", err)
	}
	return entry, nil
}

func (j *entryJSON) entry() (Entry, error) {
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

// MarshalJSON returns the form that [ParseEntry] parses.
func (e Entry) MarshalJSON() ([]byte, error) {
	if e.Rule != nil {
		return json.Marshal(entryJSON{Match: e.Rule.Match, Mode: e.Rule.Mode.String()})
	}
	return json.Marshal(entryJSON{UID: e.Room.UID, Mode: e.Room.Mode.String(), Boards: e.Room.Boards})
}

// Field returns the entry's field in the hash of rooms set at run time: "room:<uid>" or "board:<match>".
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
