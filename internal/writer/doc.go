// Package writer is the write side of rankcache: it applies commands to scores in
// Redis and publishes the updates of super-hot boards on Kafka.
//
// The path of a command, in order: consumer.go reads a batch of the command topic;
// command.go decodes and checks each record; apply.go sends the batch to Redis in
// one pipeline, where apply.lua applies each order id once and raises the board's
// seq; producer.go publishes the updates of super-hot boards on topics that
// topics.go has created; once all are acknowledged the batch's offsets are
// committed. writer.go runs these stages. http.go does the same for one command of
// a caller without Kafka.
//
// # Guarantees
//
// A crash repeats the commands that were not committed. Redis keeps a record of
// each order id with the result, so a repeat changes nothing and gives the same
// update again: no change is lost, and duplicates are recognized by their seq.
// Several writers may share the work, and may overlap.
//
// Not guaranteed: a command posted over HTTP is repeated only by its caller; one
// that failed after Redis applied it leaves a gap in the board's topic, which
// sidecars close from Redis. A Redis that loses acknowledged writes in a failover
// loses the order ids with the scores.
//
// # Glossary
//
//	command   one requested score change
//	order id  the caller's idempotency key of a command
//	seq       count of a board's applied changes, raised by apply.lua
//	update    one applied change as published on the board's topic
//	refusal   the reason why a command is not applied
//
// Start reading at [Writer.Run].
package writer
