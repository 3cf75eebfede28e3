// Package writer (no public API) is the write side of rankcache: it applies commands to scores in
// Redis and publishes the updates of super-hot boards on Kafka.
//
// # The way of a command
//
//  1. It comes in: read.go takes a batch of the command topic (read_client.go), from where the group has come in this
//     topic (read_topic.go); http.go takes a request, which http_answer.go answers.
//  2. It is accepted (process.go): command.go decodes it, resolve.go finds its board (of a split one the member's shard)
//     and what its class allows, and whether it is late. refusal.go has why not.
//  3. It is applied (apply.go): apply_call.go calls apply.lua, which applies each order id once and keeps the board's
//     run, seq and sum; order.go has what it takes and returns, script.go its variants. apply_lookup.go answers
//     repeats that are late; apply_gather.go has posts that come at the same time share a pipeline.
//  4. Its board is prepared if need be (prepare.go, prepare.lua): at its birth it is put into the index of ends, in which
//     the controller finds it, at each turn of its orders, and when something else has changed it (prepare_adopt.go adds
//     it up). Also prepare_rolling.go, prepare_hidden.go, and prepare_lost.go, which asks the ledger.
//  5. It feeds other boards (feed.go), once its own has it; roomset.go keeps which boards run in a room.
//  6. It is published (publish.go): updates of super-hot boards, the ledger's, and refusals (refused.go), by
//     publish_send.go on topics that publish_topics.go makes; then its offset is committed, or its post answered. Where
//     the log is in Redis apply.lua has published it, and log.go looks after that.
//
// batches.go takes a batch through these steps, post.go a post; writer.go starts both, and what runs beside them. A post
// of a durable class is in the command topic before (post_record.go), and may wait for its reader (wait.go, wait_look.go).
//
// Beside the way: rewind.go has commands of durable classes read again that Redis may have lost. It tells the machine of
// internal/rewind what has happened, and does what that answers (rewind_ask.go); rewind_positions.go keeps in Redis how
// far it is in the topic, round.go what holds until it is read again, eras.go the masters' histories. fault.go has what
// keeps a writer from its work, status.go what an operator asks of it, gain.go who gains most.
//
// Uses run down: a file uses names of files behind it alone, in the order writer, http, status, post, batches, publish,
// wait_look, feed, process, read, rewind, apply, prepare, and then what they pass on: job, round, order, resolve, command.
//
// # Guarantees
//
// A crash repeats the commands that were not committed. Redis keeps a record of each order id with the result for at
// least one order life, so a repeat changes nothing and gives the same update again: no change is lost, and duplicates
// are recognized by their seq. What may be a repeat of a forgotten one is refused. Several writers may share the work,
// and may overlap.
//
// An increment changes its own board and those that it feeds exactly once, as a repeat
// completes what is missing; a post of such a class is in the command topic before.
//
// Not guaranteed: any other command posted over HTTP is repeated only by its caller; one that failed after Redis
// applied it leaves a gap in the board's topic, which sidecars close from Redis. A Redis that loses acknowledged writes
// in a failover loses the order ids with the scores: those of durable classes are applied again, and for the others the
// sum tells the two histories apart.
//
// # Glossary
//
//	meta      the value in Redis that has run, seq, sum and what the scripts need
//	turn      an order life and two minutes; orders of two turns are kept
//	bucket    one of the hashes of a turn's orders
//	adoption  adding up a board that no writer made, or that something else changed
//	refusal   the reason why a command is not applied
//
// Start reading at [Writer.Run].
package writer
