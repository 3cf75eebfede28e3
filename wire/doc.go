// Package wire has the formats exchanged between rankcache's programs: operations and updates with their JSON, and the
// names of Redis keys and Kafka topics. It does no I/O. docs/WIRE.md and docs/wire are the contract in full.
//
// An update's path, in order: the writer encodes it with [AppendUpdate] (update.go) for the topic that [Names.Topic]
// gives (names.go); a reader of the topic decodes it with [DecodeUpdate] (decode.go), which first tries a scanner for
// the usual flat shape (scan.go) and falls back on encoding/json. Where the log is in Redis the path is a short one:
// apply.lua packs the records of orders (order.go), and [DecodeLog] reads them (log.go).
//
// # Glossary
//
//	op         the operation of a change: incr, set or delete
//	companion  a Redis key that belongs to a board and carries its id as hash tag
//
// Start reading at [DecodeUpdate].
package wire
