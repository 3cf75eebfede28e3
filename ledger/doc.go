// Package ledger (no public API) keeps every applied change of boards in a SQL database behind Redis:
// PostgreSQL, MariaDB or MySQL. It consumes the topic rank_updates and writes rows and its
// place in the topic in one transaction, so each change is in the tables exactly once,
// whatever dies. docs/LEDGER.md has the tables.
//
// A record's path, in order: a consumer (consumer.go) decodes it into a [Batch] (batch.go);
// [Store.Apply] (apply.go) moves the offsets on (offsets.go), writes rank_log, rank_score
// (rows.go) and rank_board (boards.go). Changes that meet other rows are settled first
// (clash.go), and what Redis has lost goes to rank_lost (lost.go). The statements of the
// kinds of database differ in dialect.go alone.
//
// # Glossary
//
//	run        one life of a board; a later one has a higher number
//	clash      two changes that can't both be: same board, run and seq, or same board,
//	           member and order id
//	lost       of a history that Redis does not have any more
//	overtaken  another consumer has written the batch's offsets
package ledger
