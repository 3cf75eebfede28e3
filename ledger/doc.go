// Package ledger (no public API) keeps every applied change of boards in a SQL database behind Redis: PostgreSQL,
// MariaDB or MySQL. It consumes the topic rank_updates and writes rows and its place in the topic in one transaction,
// so each change is in the tables exactly once, whatever dies. docs/LEDGER.md has the tables.
//
// # The way of a record, step by step
//
// Uses run down: a file uses names of files that are named here behind it, and none before it.
//
//  1. It is awaited: run.go starts the parts, each a goroutine, and has batch after batch read and applied. Beside that,
//     beside.go looks again and again at what the tables have, lag.go at how far the topic is ahead; finals_topic.go
//     takes in finals that an older dump lacks, and compare.go compares boards with Redis.
//  2. It comes in: consumer.go reads and decodes it into a [Batch], after consumer_claim.go has looked whether the group
//     writes this database, and consumer_places.go where the database reads on. Both have the [Ledger] (ledger.go: its
//     options, and how it fares; metrics.go). reached.go tells when the database has all of a topic.
//  3. It is applied: bad.go takes in what an older ledger could not read, and judge.go asks Redis which changes are
//     lost. apply.go writes a batch in one transaction with the offsets behind it.
//  4. Which changes stand: eras.go has boards be led by the servers that writers, or Redis, have named. settle.go, for
//     changes of another run than their board's latest, finds which run continues which; moves.go moves rows between
//     rank_log and rank_lost with that.
//  5. Out: store.go opens the [Store], whose parts these are. Boards by rank (ranks.go), and all of one at a moment
//     (snapshot_members.go, snapshot.go); results (finals.go); proofs (fold.go change by change, prove.go as a whole);
//     changes.go by order and time. keep.go removes what is old; forget.go has a pseudonym (pseudonym.go) take a
//     member's place. inspect.go tells what the user may do, migrate.go makes the tables.
//  6. The tables: lineage.go knows a board's runs, boards.go their rows in rank_board; lost.go those of rank_lost;
//     batch.go what came in together; offsets.go rank_offset; rows.go rank_log and rank_score.
//  7. The ground: differ.go compares members, pooler.go looks for a pooler, certificates.go has TLS; database.go has
//     transactions and statements, and dialect.go all that differs between the kinds of database.
//
// # Glossary
//
//	life       the runs from one that begins with change 1 up to the next such one
//	stands     of a change that is part of the history of its board's latest run
//	set aside  of one that does not stand, and whose order id may come again
//	lost       of one whose order id has not come again in time
//	overtaken  another consumer has written the batch's offsets
package ledger
