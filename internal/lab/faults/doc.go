// Package faults is the fault suite: it injects faults and compares every answer
// with the history of the board.
//
// One row of the suite (row_test.go) has an environment of its own: a redis-server, the
// suite's Kafka broker behind proxies, rankcache write and rankcache serve as
// child processes of the command as it is built. The path of a row, in order:
//
//	proxy.go    every connection to Redis and Kafka passes one that can be cut,
//	            stalled, slowed down or turned to another server
//	writes.go   posters give scores through the writer and post each command
//	            until it is answered; the answer reports which seq it became
//	history.go  from these answers: what a board was at every seq
//	reads.go    readers request tops, standings and batches
//	answer.go   the decoded answer
//	oracle.go,  an answer with seq S must be the board at S, entry by entry, must
//	            not be older than its age, and not go back behind an answer
//	judge.go    that was complete before its request
//	tally.go    answers by phase, and the table in docs/reliability/FAULTS.md
//
// A row is steady, then its fault is injected and held while reads and writes go
// on, healed, and has recovered when local boards are answered locally with all
// that was written before the healing. At its end every board is compared with
// Redis and with the history, entry by entry.
//
// Writes that a failover loses are lost to the oracle too: Redis is the system
// of record. Until the row has recovered, an answer may be of the history before
// the failover or after it, but never a mixture of both.
//
// Words: a row is one fault and its phases; the oracle knows the board at every seq;
// the judge compares an answer with the oracle; the tally counts the judgements.
package faults
