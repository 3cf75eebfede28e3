package rooms

import (
	"time"

	"rankcache"
	"rankcache/wire"
)

// Log tells where a board's updates are.
type Log struct {
	Topic string
	// Shared tells that other boards have the topic, too. The key of its updates is then
	// their board, so that each board's are in one partition.
	Shared bool
	// First is before the board's first update, and Last is until when updates are
	// published. Zero: not known.
	First, Last time.Time
}

// earliest is how long before its period's start the first update of a board can be: a
// writer takes commands a minute early, and clocks differ.
const earliest = 3 * time.Minute

// Log returns where the updates of a board are. Those of a class are in the topic of its
// class and day if its periods are parts of days.
func (all Classes) Log(names wire.Names, id rankcache.BoardID) Log {
	own := names.Topic(id)
	b, kind, ok := all.Board(id)
	if !ok || b.Period.Tag == "" {
		return Log{Topic: own}
	}
	topic := b.Topic(names)
	return Log{Topic: topic, Shared: topic != own, First: b.Period.Start.Add(-earliest), Last: b.Period.End.Add(kind.Grace)}
}
