// Package ledger (no public API) keeps every applied change of boards in a SQL database behind Redis: PostgreSQL,
// MariaDB or MySQL. It consumes the topic rank_updates and writes rows and its place in the topic in one transaction,
// so each change is in the tables exactly once, whatever dies. docs/LEDGER.md has the tables.
//
// A record's path, in order: a consumer (consumer.go) decodes it into a [Batch] (batch.go); [Store.Apply] (apply.go)
// moves the offsets on (offsets.go), writes rank_log, rank_score (rows.go) and rank_board (boards.go). Changes of
// another run than their board's latest are settled first (settle.go): which run continues which (lineage.go), and what
// moves between rank_log and rank_lost with that (moves.go). What does not come again is lost (lost.go). What is forgotten
// has a pseudonym later (forget.go, pseudonym.go). The statements of the kinds of database differ in dialect.go alone.
//
// # Glossary
//
//	life       the runs from one that begins with change 1 up to the next such one
//	stands     of a change that is part of the history of its board's latest run
//	set aside  of one that does not stand, and whose order id may come again
//	lost       of one whose order id has not come again in time
//	overtaken  another consumer has written the batch's offsets
package ledger
