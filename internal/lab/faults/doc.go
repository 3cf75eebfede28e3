// Package faults is the suite that causes every fault we can think of and
// compares each answer with what it should have been.
//
// One row of the suite (row_test.go) has an environment of its own: a redis-server, the
// suite's Kafka broker behind proxies, rankcache write and rankcache serve as
// child processes of the command as it is built. The way of a row, in order:
//
//	proxy.go    every connection to Redis and Kafka passes one that can be cut,
//	            stalled, slowed down or turned to another server
//	writes.go   posters give scores through the writer and post each command
//	            until it is answered; the answer says which seq it became
//	history.go  from these answers: what a board was at every seq
//	reads.go    readers ask for tops, standings and batches
//	answer.go   what an answer said
//	oracle.go,  an answer with seq S must be the board at S, entry by entry, must
//	            not be older than its age says, and not go back behind an answer
//	judge.go    that was complete before it was asked for
//	ahead.go    tells an answer that is nothing but ahead of its seq from a wrong one
//	tally.go    what callers saw, phase by phase
//	report.go   the table in docs/RELIABILITY.md
//
// A row is steady, then its fault is injected and held while reads and writes go
// on, healed, and has recovered when local boards are answered locally with all
// that was written before the healing. At its end every board is compared with
// Redis and with the history, entry by entry.
//
// Writes that a failover loses are lost to the oracle too: Redis is the system
// of record. Until the row has recovered, an answer may be of the history before
// the failover or after it, but never a mixture of both.
package faults
