package roomsync

import (
	"maps"
	"slices"

	"rankcache"
	"rankcache/rooms"
)

// Sources of what is said of a room.
const (
	sourceFile    = "file"
	sourceDynamic = "dynamic"
)

// RoomRow is one room as GET /rooms shows it.
type RoomRow struct {
	UID        string              `json:"uid"`
	Mode       string              `json:"mode"`
	Boards     []rankcache.BoardID `json:"boards"` // as named, else as Redis says
	Source     string              `json:"source"` // file or dynamic
	Overridden bool                `json:"overridden"`
}

// RuleRow is one board or pattern as GET /rooms shows it.
type RuleRow struct {
	Match      string `json:"match"`
	Mode       string `json:"mode"`
	Source     string `json:"source"`
	Overridden bool   `json:"overridden"`
}

// list is everything that is said of rooms, from where, and what of it is in
// force. It is immutable.
type list struct {
	inForce *rooms.File
	rooms   []RoomRow
	rules   []RuleRow
}

// merge returns the file's entries in their order and behind them the dynamic
// ones, sorted by field. A dynamic entry for a room or a pattern that the file
// names is overridden: what was reviewed wins over what was typed in a hurry.
func merge(file *rooms.File, dynamic map[string]rooms.Entry, running map[string][]rankcache.BoardID) *list {
	l := &list{inForce: &rooms.File{}}
	named := make(map[string]bool)
	for _, room := range file.Rooms {
		l.room(room, sourceFile, false, running)
		named[rooms.RoomField(room.UID)] = true
	}
	for _, rule := range file.Rules {
		l.rule(rule, sourceFile, false)
		named[rooms.BoardField(rule.Match)] = true
	}
	for _, field := range slices.Sorted(maps.Keys(dynamic)) {
		if e := dynamic[field]; e.Rule != nil {
			l.rule(*e.Rule, sourceDynamic, named[field])
		} else {
			l.room(*e.Room, sourceDynamic, named[field], running)
		}
	}
	return l
}

func (l *list) room(room rooms.Room, source string, overridden bool, running map[string][]rankcache.BoardID) {
	boards := room.Boards
	if boards == nil {
		boards = running[room.UID]
	}
	if boards == nil {
		boards = []rankcache.BoardID{} // [] and not null for those who read JSON
	}
	l.rooms = append(l.rooms, RoomRow{room.UID, room.Mode.String(), boards, source, overridden})
	if !overridden {
		l.inForce.Rooms = append(l.inForce.Rooms, room)
	}
}

func (l *list) rule(rule rooms.Rule, source string, overridden bool) {
	l.rules = append(l.rules, RuleRow{rule.Match, rule.Mode.String(), source, overridden})
	if !overridden {
		l.inForce.Rules = append(l.inForce.Rules, rule)
	}
}

// unnamed returns the rooms in force whose boards nobody names.
func (l *list) unnamed() (uids []string) {
	for _, room := range l.inForce.Rooms {
		if room.Boards == nil {
			uids = append(uids, room.UID)
		}
	}
	return uids
}
