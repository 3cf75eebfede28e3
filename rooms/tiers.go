package rooms

import (
	"path"
	"slices"
	"strings"
	"time"

	"rankcache"
)

// Tiers holds the mode of every configured board and room, resolved to boards. It is immutable.
type Tiers struct {
	boards   map[rankcache.BoardID]setting
	priority []rankcache.BoardID // keys of boards in the order of their first mention, those that linger last
	rooms    map[string]Mode
	patterns []Rule                       // rules with wildcards
	finds    bool                         // one of them has boards kept
	bypassed map[rankcache.BoardID]Bypass // allBoards: all of them
	formed   byStart                      // classes with scores that are not shown as they are
	trims    byStart                      // classes that keep their best members alone
	durable  byStart                      // classes whose commands are in the log before they are applied
	data     byStart                      // classes whose members may have data
	kept     byStart                      // classes with a ledger
	rolling  byStart                      // classes whose boards are sums of others
	split    byStart                      // classes whose boards are kept as shards
	approx   byStart                      // classes whose members' ranks are approximate by default
}

type byStart map[string][]*Class // classes by the start of their boards' ids, as [class.Class.Start] has it

func (s byStart) add(c *Class) { s[c.Start()] = append(s[c.Start()], c) }

// of returns the class of the board, nil if it is none of these.
func (s byStart) of(b rankcache.BoardID) *Class {
	if len(s) == 0 {
		return nil
	}
	start := string(b)
	if i := strings.IndexAny(start, ":._"); i >= 0 {
		start = start[:i]
	}
	for _, classes := range [...][]*Class{s[start], s[""]} {
		if i := slices.IndexFunc(classes, func(c *Class) bool { return c.Matches(b) }); i >= 0 {
			return classes[i]
		}
	}
	return nil
}

// setting is what is known of a board that is named.
type setting struct {
	mode    Mode
	form    rankcache.ScoreForm
	lingers bool // it has the mode only because it lingers
	rolls   bool // it is a sum of others, and not whole before it is primed
	shards  int  // it is kept as so many others; 0: as itself
}

// Resolve returns the tiers of the file. running holds the boards of those rooms whose entry names none; it may be nil.
// Boards that were found are named with the mode of the patterns that they match.
func (f *File) Resolve(running map[string][]rankcache.BoardID, found ...rankcache.BoardID) *Tiers {
	t := &Tiers{boards: make(map[rankcache.BoardID]setting), rooms: make(map[string]Mode, len(f.Rooms)), formed: make(byStart), trims: make(byStart), data: make(byStart),
		durable: make(byStart), kept: make(byStart), rolling: make(byStart), split: make(byStart), approx: make(byStart)}
	for _, c := range f.Classes {
		if c.Form != rankcache.ScoreNumber {
			t.formed.add(c)
		}
		if c.Trim > 0 {
			t.trims.add(c)
		}
		if c.Data {
			t.data.add(c)
		}
		if c.Durable {
			t.durable.add(c)
		}
		if c.Ledger && c.Calendar().Periodic() {
			t.kept.add(c)
		}
		if c.Approximate {
			t.approx.add(c)
		}
		if c.Rolls() {
			t.rolling.add(c)
		}
		if c.Split() {
			t.split.add(c)
		}
	}
	for _, room := range f.Rooms {
		t.rooms[room.UID] = room.Mode
		boards := room.Boards
		if boards == nil {
			boards = running[room.UID]
		}
		for _, b := range boards {
			t.raise(b, room.Mode)
		}
	}
	for _, rule := range f.Rules {
		if b := rankcache.BoardID(rule.Match); b.Check() != nil {
			t.patterns, t.finds = append(t.patterns, rule), t.finds || rule.Mode != ModeBlocked
		} else if !rule.Lingers {
			t.raise(b, rule.Mode)
		}
	}
	for _, b := range found {
		if m := t.matching(b); m != ModeNone {
			t.raise(b, m)
		}
	}
	t.linger(f.Rules)
	for b, s := range t.boards {
		t.boards[b] = setting{max(s.mode, t.matching(b)), t.formOf(b), s.lingers, t.rolling.of(b) != nil, 0}
	}
	t.addWholes()
	return t
}

// linger sets the mode of boards that linger, unless they have it otherwise.
func (t *Tiers) linger(rules []Rule) {
	var last []rankcache.BoardID
	for _, rule := range rules {
		if b := rankcache.BoardID(rule.Match); rule.Lingers && t.boards[b].mode < rule.Mode {
			last, t.boards[b] = append(last, b), setting{mode: rule.Mode, lingers: true}
		}
	}
	t.priority = append(slices.DeleteFunc(t.priority, func(b rankcache.BoardID) bool { return t.boards[b].lingers }), last...)
}

// raise sets the mode of a board, or of its shards, unless a greater one applies.
func (t *Tiers) raise(board rankcache.BoardID, m Mode) {
	for _, b := range t.Parts(board) {
		if _, named := t.boards[b]; !named {
			t.priority = append(t.priority, b)
		}
		t.boards[b] = setting{mode: max(t.boards[b].mode, m)}
	}
}

// Mode returns the greater of the modes of the board and of the caller's room, "": none. Nil Tiers: ModeNone.
func (t *Tiers) Mode(board rankcache.BoardID, room string) Mode {
	m, _, _, _ := t.Of(board, room)
	return m
}

// Of returns the mode as [Tiers.Mode] does, how the scores of the board are shown, whether the board is a sum of
// others, and not whole before it is primed, and its number of shards as [Tiers.Shards] does.
func (t *Tiers) Of(board rankcache.BoardID, room string) (mode Mode, form rankcache.ScoreForm, rolls bool, shards int) {
	if t == nil {
		return ModeNone, rankcache.ScoreNumber, false, 0
	}
	s, known := t.boards[board]
	if !known {
		s = setting{mode: t.matching(board), form: t.formOf(board), rolls: t.rolling.of(board) != nil, shards: t.Shards(board)}
	}
	if room != "" {
		s.mode = max(s.mode, t.rooms[room])
	}
	return s.mode, s.form, s.rolls, s.shards
}

// Trims reports whether the board's class keeps its best members alone in the sorted set.
func (t *Tiers) Trims(board rankcache.BoardID) bool { return t.Trim(board) > 0 }

// Trim returns how many members such a board keeps there, 0 for other boards.
func (t *Tiers) Trim(board rankcache.BoardID) int {
	if t != nil {
		if c := t.trims.of(board); c != nil {
			return c.Trim
		}
	}
	return 0
}

// HasData reports whether members of the board may have data beside their scores.
func (t *Tiers) HasData(board rankcache.BoardID) bool { return t != nil && t.data.of(board) != nil }

// Durable reports whether the board is of a durable class: each of its runs is of one history of Redis.
func (t *Tiers) Durable(board rankcache.BoardID) bool { return t != nil && t.durable.of(board) != nil }

// Approximate reports whether the board is of a class in which ranks of members are so by default.
func (t *Tiers) Approximate(board rankcache.BoardID) bool {
	return t != nil && t.approx.of(board) != nil
}

// Ended reports whether the board's period has ended and its class has a ledger. gone is [Class.Gone] past its keep.
func (t *Tiers) Ended(board rankcache.BoardID, now time.Time) (gone error, ended bool) {
	if t == nil {
		return nil, false
	}
	c := t.kept.of(board)
	if c == nil {
		return nil, false
	}
	b, ok := c.Parse(board)
	if !ok {
		return nil, false
	}
	p := c.InState(b.Period, now)
	if p.State == PeriodGone {
		gone = c.Gone(b.Period)
	}
	return gone, p.State >= PeriodEnded
}

func (t *Tiers) formOf(b rankcache.BoardID) rankcache.ScoreForm {
	if c := t.formed.of(b); c != nil {
		return c.Form
	}
	return rankcache.ScoreNumber
}

// Boards returns the boards of one mode, sorted, shards for split ones. The slice is the caller's.
func (t *Tiers) Boards(mode Mode) []rankcache.BoardID {
	var boards []rankcache.BoardID
	if t != nil {
		for b, s := range t.boards {
			if s.mode == mode && s.shards == 0 {
				boards = append(boards, b)
			}
		}
	}
	slices.Sort(boards)
	return boards
}

// ByPriority returns the boards of one mode, as the file names them, and those that linger. The caller's slices.
func (t *Tiers) ByPriority(mode Mode) (boards, lingering []rankcache.BoardID) {
	if t == nil {
		return nil, nil
	}
	for _, b := range t.priority {
		switch s := t.boards[b]; {
		case s.mode != mode:
		case s.lingers:
			lingering = append(lingering, b)
		default:
			boards = append(boards, b)
		}
	}
	return boards, lingering
}

// Finds reports whether boards are kept that only a pattern names, once they are read.
func (t *Tiers) Finds() bool { return t.finds }

// Found returns the mode of a board that no entry names, as patterns give it.
func (t *Tiers) Found(board rankcache.BoardID) (mode Mode, ok bool) {
	if _, named := t.boards[board]; named {
		return ModeNone, false
	}
	mode = t.matching(board)
	return mode, mode != ModeNone
}

// matching returns the greatest mode of the patterns that match the board, or that of which it is a shard.
func (t *Tiers) matching(b rankcache.BoardID) (most Mode) {
	if len(t.patterns) == 0 {
		return ModeNone
	}
	whole := t.Whole(b)
	for _, rule := range t.patterns {
		is, _ := path.Match(rule.Match, string(b))
		if of, _ := path.Match(rule.Match, string(whole)); is || of {
			most = max(most, rule.Mode)
		}
	}
	return most
}
