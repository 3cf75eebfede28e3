package rooms

import (
	"path"
	"slices"

	"rankcache"
)

// Tiers is what the operator has said, resolved to boards: rooms with their
// boards of this moment, and rules. It is immutable; whoever follows the rooms
// publishes a new one.
type Tiers struct {
	boards map[rankcache.BoardID]Mode
	order  []rankcache.BoardID // of boards, as they were first named
	rooms  map[string]Mode
	rules  []Rule // blocked patterns only; the others name one board
}

// Resolve returns the tiers of the rooms. running says which boards run in a
// room whose entry names none; it may be nil.
func (f *File) Resolve(running map[string][]rankcache.BoardID) *Tiers {
	t := &Tiers{boards: make(map[rankcache.BoardID]Mode), rooms: make(map[string]Mode, len(f.Rooms))}
	for _, room := range f.Rooms {
		t.rooms[room.UID] = room.Mode
		boards := room.Boards
		if boards == nil {
			boards = running[room.UID]
		}
		for _, b := range boards {
			t.say(b, room.Mode)
		}
	}
	for _, rule := range f.Rules {
		if b := rankcache.BoardID(rule.Match); b.Check() == nil {
			t.say(b, rule.Mode)
		} else {
			t.rules = append(t.rules, rule)
		}
	}
	for b, m := range t.boards {
		t.boards[b] = max(m, t.ruled(b))
	}
	return t
}

func (t *Tiers) say(b rankcache.BoardID, m Mode) {
	if _, named := t.boards[b]; !named {
		t.order = append(t.order, b)
	}
	t.boards[b] = max(t.boards[b], m)
}

// Mode returns what was said of the board, or of the room that the caller names
// ("" for none); the greater mode wins. A nil Tiers says nothing.
func (t *Tiers) Mode(board rankcache.BoardID, room string) Mode {
	if t == nil {
		return ModeNone
	}
	m, known := t.boards[board]
	if !known {
		m = t.ruled(board)
	}
	if room != "" {
		m = max(m, t.rooms[room])
	}
	return m
}

// Boards returns the boards of one mode, sorted. The slice is the caller's.
func (t *Tiers) Boards(mode Mode) []rankcache.BoardID {
	var boards []rankcache.BoardID
	if t != nil {
		for b, m := range t.boards {
			if m == mode {
				boards = append(boards, b)
			}
		}
	}
	slices.Sort(boards)
	return boards
}

// InOrder returns the boards of one mode in the order in which they were named,
// which is that of their importance. The slice is the caller's.
func (t *Tiers) InOrder(mode Mode) []rankcache.BoardID {
	if t == nil {
		return nil
	}
	var boards []rankcache.BoardID
	for _, b := range t.order {
		if t.boards[b] == mode {
			boards = append(boards, b)
		}
	}
	return boards
}

func (t *Tiers) ruled(b rankcache.BoardID) Mode {
	for _, rule := range t.rules {
		if ok, _ := path.Match(rule.Match, string(b)); ok {
			return rule.Mode
		}
	}
	return ModeNone
}
