// Package wire has the formats exchanged between rankcache's programs: operations and
// updates with their JSON, and the names of Redis keys and Kafka topics. It does
// no I/O. docs/WIRE.md and docs/wire are the contract in full.
//
// An update's path, in order: the writer encodes it with [AppendUpdate]
// (update.go) for the topic that [Names.Topic] gives (names.go); a reader of the
// topic decodes it with [DecodeUpdate] (decode.go), which first tries a scanner
// for the usual flat shape (scan.go) and falls back on encoding/json.
//
// # Glossary
//
//	update     one applied change of one board
//	op         the operation of a change: incr, set or delete
//	seq        count of a board's applied changes, after this one
//	order id   the caller's idempotency key of one change
//	companion  a Redis key that belongs to a board and carries its id as hash tag
//
// Start reading at [DecodeUpdate].
package wire
