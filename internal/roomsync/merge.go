package roomsync

import (
	"maps"
	"slices"

	"rankcache"
	"rankcache/rooms"
)

// Sources of a room or rule.
const (
	sourceFile    = "file"
	sourceClass   = "class" // of the file, or set at run time
	sourceDynamic = "dynamic"
)

// RoomRow is one room as GET /rooms shows it.
type RoomRow struct {
	UID        string              `json:"uid"`
	Mode       string              `json:"mode"`
	Boards     []rankcache.BoardID `json:"boards"` // as configured, else those of its Redis set
	Source     string              `json:"source"` // file, class or dynamic
	Overridden bool                `json:"overridden"`
}

// RuleRow is one board or pattern as GET /rooms shows it.
type RuleRow struct {
	Match      string `json:"match"`
	Mode       string `json:"mode"`
	Source     string `json:"source"`
	Overridden bool   `json:"overridden"`
}

// merged holds all rooms and rules with their source, and which are in force. It is immutable.
type merged struct {
	file     *rooms.File // with the classes set at run time
	inForce  *rooms.File
	rooms    []RoomRow
	rules    []RuleRow
	bypasses []rooms.Bypass
	document string // of the classes set at run time
}

// merge returns the file's entries in their order, followed by the boards of its classes and the dynamic entries,
// sorted by field. The file overrides a dynamic entry for the same room or pattern, because the file was reviewed.
func merge(file *rooms.File, classBoards []rooms.Rule, dynamic map[string]rooms.Entry, running map[string][]rankcache.BoardID) *merged {
	m := &merged{file: file, inForce: &rooms.File{Classes: file.Classes}}
	named := make(map[string]bool)
	for _, room := range file.Rooms {
		m.addRoom(room, sourceFile, false, running)
		named[rooms.RoomField(room.UID)] = true
	}
	for _, rule := range file.Rules {
		m.addRule(rule, sourceFile, false)
		named[rooms.BoardField(rule.Match)] = true
	}
	for _, rule := range classBoards {
		m.addRule(rule, sourceClass, false)
	}
	for _, field := range slices.Sorted(maps.Keys(dynamic)) {
		if e := dynamic[field]; e.Rule != nil {
			m.addRule(*e.Rule, sourceDynamic, named[field])
		} else {
			m.addRoom(*e.Room, sourceDynamic, named[field], running)
		}
	}
	return m
}

func (m *merged) addRoom(room rooms.Room, source string, overridden bool, running map[string][]rankcache.BoardID) {
	boards := room.Boards
	if boards == nil {
		boards = running[room.UID]
	}
	if boards == nil {
		boards = []rankcache.BoardID{} // [] in JSON, not null
	}
	m.rooms = append(m.rooms, RoomRow{room.UID, room.Mode.String(), boards, source, overridden})
	if !overridden {
		m.inForce.Rooms = append(m.inForce.Rooms, room)
	}
}

func (m *merged) addRule(rule rooms.Rule, source string, overridden bool) {
	m.rules = append(m.rules, RuleRow{rule.Match, rule.Mode.String(), source, overridden})
	if !overridden {
		m.inForce.Rules = append(m.inForce.Rules, rule)
	}
}

func (m *merged) roomsWithoutBoards() (uids []string) {
	for _, room := range m.inForce.Rooms {
		if room.Boards == nil {
			uids = append(uids, room.UID)
		}
	}
	return uids
}
