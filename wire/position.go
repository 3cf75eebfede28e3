package wire

import "fmt"

const PositionsLife = "life" // the field of [Names.AppliedKey] beside the partitions: the hash's name since it was made

// PositionsDamaged is the field that a master has, beside its positions, which may lack changes that are not in the
// topic any more: "<since when, in Unix milliseconds> <partitions of the topic>". The ledger takes it away once all
// boards are whole, and all partitions are healed in the present era.
const PositionsDamaged = "damaged"

// What the ledger answers for a board that a damaged master may have lost.
const (
	AnswerGo    = "go"    // it is there again, or the ledger does not have it
	AnswerEnded = "ended" // it has a final
	AnswersLeft = ""      // is, in place of a board, the field of the number of boards that are still to be looked at
)

// Position is how far a master of Redis is in a partition of the topic of commands.
type Position struct {
	Topic  string // id of the topic
	Next   int64  // everything before was applied or refused, and what came of it is published
	Healed string // the latest era in which all that was lost before is made up for; "-" for none
}

// ParsePosition reads the value of a partition's field: "<topic id> <next offset> <era>".
func ParsePosition(text string) (p Position, ok bool) {
	if _, err := fmt.Sscan(text, &p.Topic, &p.Next, &p.Healed); err != nil {
		return Position{}, false
	}
	return p, true
}
