package writer

import (
	"rankcache/rooms"
	"rankcache/wire"
)

// ledgerTopic is the topic of the ledger and which boards' changes are published to it.
type ledgerTopic struct {
	name  string
	tiers Tiers
	all   bool // else only those of classes with ledger: true
}

// wants reports whether changes of boards of a class are published; nil: of boards without class.
func (t *ledgerTopic) wants(kind *rooms.Class) bool { return t.all || kind != nil && kind.Ledger }

// append appends the record of an applied change, duplicates included, as [processor.appendMessages]
// does: its key is the board, so that a board's changes stay in sequence.
func (t *ledgerTopic) append(messages []message, u *wire.Update) []message {
	record := wire.LedgerUpdate{Update: *u}
	if board, kind, found := t.tiers.File().Board(u.Board); found {
		record.Class, record.Dims, record.Tag = kind.Name(), board.Dims, board.Period.Tag
	}
	return append(messages, message{topic: t.name, key: []byte(u.Board), value: wire.AppendLedgerUpdate(nil, &record)})
}
