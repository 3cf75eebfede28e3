package rooms

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"rankcache"
	"rankcache/class"
)

// Split reports whether the class's boards are kept as shards: see [class.Class.Split].
func (c *Class) Split() bool { return c.Shards() > 0 }

// split splits the boards of a class, and refuses the settings that nobody answers for several shards.
func (c *Class) split(shards int) (err error) {
	if shards == 0 {
		return nil
	}
	for _, s := range []struct {
		set       bool
		key, what string
	}{
		{c.Ties != TiesMember, "ties: " + string(c.Ties), "shards count their changes apart, so none tells which of two members was first"},
		{c.Rolls(), "rolling", "boards that are sums are not split"},
		{c.Trim > 0, "trim", "each shard would keep as many"},
		{c.Guard.Members > 0, "guard: members", "each shard would take as many"},
		{c.IDs != IDs{}, "ids", "requests of older callers don't read shards"},
		{c.Group != "", "group", "requests of older callers don't read shards"},
	} {
		if s.set {
			return fmt.Errorf("shards: don't go with %s: %s", s.key, s.what)
		}
	}
	c.Class, err = c.Class.Split(shards)
	return err
}

func (all Classes) checkSplit(c *Class) error {
	if !c.Split() {
		return nil
	}
	if len(c.RolledBy) > 0 || slices.ContainsFunc(all, func(other *Class) bool { return other.Rolling.Of == c.Name() }) {
		return errors.New("shards: a class that another is the sum of is not split")
	}
	if slices.ContainsFunc(all, func(other *Class) bool { return other.Group == c.Name() }) {
		return errors.New("shards: a class of groups is not split: requests of older callers don't read shards")
	}
	return nil
}

// checkNamed checks that the file names no shard: it names the whole board.
func (f *File) checkNamed() error {
	check := func(b rankcache.BoardID) error {
		if board, c, ok := f.Board(b); ok && c.Split() && !c.IsWhole(b) {
			return fmt.Errorf("board %s is a shard of one of class %s: name the whole board, %s", b, c.Name(), board.Whole())
		}
		return nil
	}
	for _, room := range f.Rooms {
		for _, b := range room.Boards {
			if err := check(b); err != nil {
				return fmt.Errorf("room %q: %w", room.UID, err)
			}
		}
	}
	for _, rule := range f.Rules {
		if err := check(rankcache.BoardID(rule.Match)); err != nil {
			return err
		}
	}
	return nil
}

// Shards returns into how many shards a whole board is split, 0 for shards and other boards.
func (t *Tiers) Shards(b rankcache.BoardID) int {
	if t == nil {
		return 0
	}
	if s, known := t.boards[b]; known {
		return s.shards
	}
	if c := t.split.of(b); c != nil && c.IsWhole(b) {
		return c.Shards()
	}
	return 0
}

// Whole returns the whole board that one is a shard of, or the board itself.
func (t *Tiers) Whole(b rankcache.BoardID) rankcache.BoardID {
	if t != nil {
		if c := t.split.of(b); c != nil {
			return c.WholeOf(b)
		}
	}
	return b
}

// addWholes makes the whole boards known whose shards are, so that reads find them at once.
func (t *Tiers) addWholes() {
	wholes := make(map[rankcache.BoardID]setting)
	for b := range t.boards {
		if c := t.split.of(b); c != nil {
			whole := c.WholeOf(b)
			wholes[whole] = setting{mode: t.matching(whole), form: c.Form, shards: c.Shards()}
		}
	}
	maps.Copy(t.boards, wholes)
}

// Parts returns the boards that one is kept as: its shards, or itself. The slice is the caller's.
func (t *Tiers) Parts(b rankcache.BoardID) []rankcache.BoardID {
	n := t.Shards(b)
	if n == 0 {
		return []rankcache.BoardID{b}
	}
	return class.ShardIDs(b, n)
}
