package rooms

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"rankcache"
	"rankcache/class"
)

// Limits of a rooms file.
const (
	MaxFile        = 1 << 20 // bytes
	MaxRooms       = 10_000
	MaxMoreClasses = 64 << 10 // the longest document that [File.WithClasses] takes, in bytes
	maxUIDLen      = 64
)

// What errors of classes begin with.
const (
	fileSource = "rooms file"
	moreSource = "classes set at run time"
)

// ClassesField is the field of the classes in the hash of rooms set at run time; no room, board or bypass has it.
const ClassesField = "classes"

// Mode is the operator's setting for a room or a board.
type Mode uint8

// Modes, weakest first: if several apply to one board, the greatest wins.
const (
	ModeNone     Mode = iota // no setting: small, or hot by its own traffic
	ModeHot                  // pinned: top page kept locally
	ModeSuperHot             // whole board kept locally
	ModeBlocked              // requests are refused without reading Redis
)

var modeNames = [...]string{"none", "hot", "super-hot", "blocked"}

// String returns the mode as it is written in the rooms file.
func (m Mode) String() string { return modeNames[m] }

// ParseMode returns the mode written as s in a rooms file; "none" is an error.
func ParseMode(s string) (Mode, error) {
	for m, name := range modeNames {
		if m > 0 && name == s {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("unknown mode %.20q: want super-hot, hot or blocked", s)
}

// Room is one live room by its host's uid. Boards is nil if the entry names none: then its Redis set does.
type Room struct {
	UID    string
	Mode   Mode
	Boards []rankcache.BoardID
}

// Rule gives a mode to the boards whose id matches a [path.Match] pattern.
type Rule struct {
	Match   string
	Mode    Mode
	Lingers bool // the board has ended, and stays in memory while there is room
}

// File is one parsed rooms file. It is immutable after parsing.
type File struct {
	Rooms []Room
	Rules []Rule
	Classes

	calendar NewCalendar // nil: [class.NewCalendar]
}

// Parse parses a rooms file. Unknown keys, ids that are not written as strings (an unquoted 1_2_3 is the number 123)
// and duplicate rooms are errors; those of one entry give its line. An empty file is an empty File.
func Parse(data []byte) (*File, error) { return ParseWith(data, class.NewCalendar) }

// ParseWith is [Parse] with another maker of calendars, for tests and the demo, which wait for ends of periods.
func ParseWith(data []byte, calendar NewCalendar) (*File, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("rooms file has %d bytes, want at most %d", len(data), MaxFile)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("rooms file: %w", err)
	}
	f := &File{calendar: calendar}
	if len(doc.Content) == 0 {
		return f, nil
	}
	err := fields(doc.Content[0], map[string]func(*yaml.Node) error{
		"rooms":   func(n *yaml.Node) error { return each(n, f.addRoom) },
		"boards":  func(n *yaml.Node) error { return each(n, f.addRule) },
		"classes": func(n *yaml.Node) error { return f.Classes.read(n, fileSource, calendar, nil) },
	})
	if err != nil {
		return nil, fmt.Errorf("rooms file: %w", err)
	}
	if err := f.checkUnique(); err != nil {
		return nil, err
	}
	if err := f.Classes.check(); err != nil {
		return f, err
	}
	return f, f.checkNamed()
}

func (f *File) addRoom(n *yaml.Node) error {
	var room Room
	err := fields(n, map[string]func(*yaml.Node) error{
		"uid":  intoString(&room.UID),
		"mode": mode(&room.Mode),
		"boards": func(n *yaml.Node) error {
			room.Boards = []rankcache.BoardID{} // an empty list means no boards, a missing one those of Redis
			return each(n, asString(room.addBoard))
		},
	})
	if err != nil {
		return err
	}
	f.Rooms = append(f.Rooms, room)
	return at(n, room.check())
}

func (room *Room) check() error {
	if err := CheckUID(room.UID); err != nil {
		return err
	}
	if room.Mode == ModeNone {
		return fmt.Errorf("room %q has no mode: want super-hot, hot or blocked", room.UID)
	}
	for _, b := range room.Boards {
		if err := b.Check(); err != nil {
			return err
		}
	}
	return nil
}

func (room *Room) addBoard(s string) error {
	b, err := rankcache.ParseBoardID(s)
	room.Boards = append(room.Boards, b)
	return err
}

func (f *File) addRule(n *yaml.Node) error {
	var rule Rule
	err := fields(n, map[string]func(*yaml.Node) error{
		"match": intoString(&rule.Match),
		"mode":  mode(&rule.Mode),
	})
	if err != nil {
		return err
	}
	f.Rules = append(f.Rules, rule)
	return at(n, rule.check())
}

// IsPattern reports whether the rule names boards by wildcards: which they are is unknown until they are requested.
func (rule Rule) IsPattern() bool { return strings.ContainsAny(rule.Match, `*?[\`) }

func (rule Rule) check() error {
	if _, err := path.Match(rule.Match, ""); err != nil || rule.Match == "" {
		return fmt.Errorf("match %.100q is not a pattern: want an id with * or ?", rule.Match)
	}
	switch {
	case rule.Mode == ModeNone:
		return fmt.Errorf("match %.100q has no mode: want super-hot, hot or blocked", rule.Match)
	case rule.Mode != ModeBlocked && !rule.IsPattern():
		return rankcache.BoardID(rule.Match).Check()
	}
	return nil
}

func (f *File) checkUnique() error {
	if len(f.Rooms) > MaxRooms {
		return fmt.Errorf("rooms file has %d rooms, want at most %d", len(f.Rooms), MaxRooms)
	}
	seen := make(map[string]bool, len(f.Rooms))
	for _, room := range f.Rooms {
		if seen[room.UID] {
			return fmt.Errorf("rooms file has room %q twice: keep one entry", room.UID)
		}
		seen[room.UID] = true
	}
	return nil
}

// CheckBoards returns the first error of check, which is asked for every board that the file names.
func (f *File) CheckBoards(check func(rankcache.BoardID) error) error {
	for _, room := range f.Rooms {
		for _, b := range room.Boards {
			if err := check(b); err != nil {
				return fmt.Errorf("room %q: %w", room.UID, err)
			}
		}
	}
	for _, rule := range f.Rules {
		if rule.Mode == ModeBlocked || rule.IsPattern() {
			continue
		}
		if err := check(rankcache.BoardID(rule.Match)); err != nil {
			return err
		}
	}
	return f.Classes.checkBoards(check)
}

// Names reports whether the file names a board: by a class, a room or a rule without wildcards.
func (f *File) Names(board rankcache.BoardID) bool {
	_, _, known := f.Board(board)
	return known || slices.ContainsFunc(f.Rooms, func(room Room) bool { return slices.Contains(room.Boards, board) }) ||
		slices.ContainsFunc(f.Rules, func(rule Rule) bool { return rule.Match == string(board) })
}

// CheckChange returns an error if a class differs from old's of its name in what can't change while boards live: board,
// period, starts, tz, ties, order, feeds, rolling, shards, data, and seasons begun by now.
func (f *File) CheckChange(old *File, now time.Time) error {
	for _, c := range f.Classes {
		before := old.Class(c.Name())
		if before == nil {
			continue
		}
		was, is := before.lasting(), c.lasting()
		for i, key := range [...]string{"board", "period", "starts", "tz", "ties", "order", "feeds", "rolling", "shards", "data"} {
			if was[i] != is[i] {
				return c.wrong(fmt.Errorf("%s can't change from %q to %q while rankcache runs: make a new class", key, was[i], is[i]))
			}
		}
		if err := c.checkSeasons(before, now); err != nil {
			return c.wrong(err)
		}
	}
	return nil
}

// WithClasses returns the file with a document's classes beside its own, which win where both have the name, all
// checked. Errors have the document's line. The file is not changed.
func (f *File) WithClasses(document []byte, now time.Time) (*File, error) {
	more, err := f.parseMore(document)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", moreSource, err)
	}
	if err := (&File{Classes: more}).CheckChange(f, now); err != nil {
		return nil, err
	}
	with := *f
	with.Classes = slices.Clone(f.Classes)
	for _, c := range more {
		if f.Class(c.Name()) == nil {
			with.Classes = append(with.Classes, c)
		}
	}
	if err := with.Classes.check(); err != nil {
		return &with, err
	}
	return &with, with.checkNamed()
}

func (f *File) parseMore(document []byte) (more Classes, err error) {
	if len(document) > MaxMoreClasses {
		return nil, fmt.Errorf("%d bytes, want at most %d", len(document), MaxMoreClasses)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	calendar := f.calendar
	if calendar == nil {
		calendar = class.NewCalendar
	}
	if len(doc.Content) > 0 {
		err = fields(doc.Content[0], map[string]func(*yaml.Node) error{
			"classes": func(n *yaml.Node) error { return more.read(n, moreSource, calendar, f.Classes) },
		})
	}
	if err == nil && len(more) == 0 {
		err = errors.New("no class: want a list under classes, as in a rooms file")
	}
	return more, err
}

// CheckUID returns an error unless uid is 1 to 64 bytes of UTF-8 without control characters.
func CheckUID(uid string) error {
	if !rankcache.PlainText(uid, maxUIDLen) {
		return fmt.Errorf("room uid %.40q: want 1 to %d bytes of UTF-8 without control characters", uid, maxUIDLen)
	}
	return nil
}
