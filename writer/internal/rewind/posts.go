package rewind

import "time"

const PostTimeout = 5 * time.Second // how long a posted command waits for its turn

// Post is a posted command of an ordered class, which the reader of its partition applies.
type Post struct {
	Master    Master // that has its board
	Topic     string
	Partition int32
	Offset    int64
	Since     time.Time
}

// Look is what a master has told of a posted command, in this sequence on one connection.
type Look struct {
	Before   History
	Position Position // of its partition; zero if there is none
	Recorded bool     // the record of its order id is there
	After    History
}

// Verdict is what is known of a posted command.
type Verdict uint8

// Verdicts.
const (
	Waits      Verdict = iota // look again
	WasApplied                // answer with the record
	WasRefused                // it was its turn, and there is no record
	NotInTime                 // 503: the caller repeats it with the same order id
)

// Judge returns what a look tells. The position is read before the record, as it may be applied between.
func Judge(now time.Time, p *Post, l *Look) Verdict {
	switch {
	case l.Recorded:
		return WasApplied
	case l.Before != (History{}) && l.Before == l.After && l.Position.Topic == p.Topic && l.Position.Next > p.Offset:
		return WasRefused
	case now.Sub(p.Since) > PostTimeout:
		return NotInTime
	}
	return Waits
}
