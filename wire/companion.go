package wire

import (
	"strings"

	"rankcache"
)

// Companion is a hash beside some boards' sorted set, at [Names.CompanionKey], whose end it names. The writer makes it
// with the board, with the field ” as a placeholder, and it expires with the board.
type Companion string

// The companions. What they have is by member; a guard's field ” names the stretch of time.
const (
	Guard  Companion = "guard"  // changes in this stretch of time
	Gain   Companion = "gain"   // what increments have added in this stretch of time, of boards whose guard limits it
	Scores Companion = "scores" // raw scores of all members of a board whose sorted set is trimmed
	Hidden Companion = "hidden" // members that are, or were, hidden ([ParseHidden]); made with the first of them
	Data   Companion = "data"   // what members have beside their scores, of those that have any
)

// Companions returns all of them, in the sequence in which scripts are given their keys.
func Companions() []Companion { return []Companion{Guard, Gain, Scores, Data, Hidden} }

// Section returns the name of the section of the writer's script, apply.lua, that boards with the companion need.
func (c Companion) Section() string {
	if c == Scores {
		return "Trim"
	}
	return strings.ToUpper(string(c[:1])) + string(c[1:])
}

// CompanionKey returns the key of a board's companion.
func (n Names) CompanionKey(b rankcache.BoardID, c Companion) string {
	return n.beside(n.companion(c), b)
}

func (n Names) companion(c Companion) string { return fill(n.Companion, "<companion>", string(c)) }
