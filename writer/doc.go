// Package writer (no public API) is the write side of rankcache: it applies commands to scores in
// Redis and publishes the updates of super-hot boards on Kafka.
//
// The path of a command, in order: consumer.go reads a batch of the command topic; command.go decodes and checks each
// record; apply.go sends the batch to Redis in one pipeline, where apply.lua applies each order id once and keeps the
// board's run, seq and sum; producer.go publishes the updates of super-hot boards on topics that topics.go has created,
// and what was refused (refused.go); once all are acknowledged the batch's offsets are committed. writer.go runs these
// stages; process.go has what they share with posts. http.go takes the command of a caller without Kafka the same way,
// and batch.go several; gather.go has those that come at the same time share a pipeline.
//
// feed.go has an increment change the boards that its class feeds, once its own board has
// it; roomset.go keeps which boards run in a room.
//
// resolve.go finds the board of a command that names a class, and checks it against the class; of a split board it is
// the member's shard. late.go refuses what arrives outside of its period, unless it is a repeat.
//
// apply.lua is a template: script.go makes of it one script for each combination of ties,
// guards and trim, which the rules of a board's class (resolve.go) choose. gain.go counts
// who gains most, which status.go shows with what else an operator asks of a writer.
//
// rewind.go has the commands of durable classes read again that Redis may have lost: it does what the
// machine of internal/rewind answers (rewind_act.go). positions.go keeps in Redis how far it is in
// the topic, and consumer_rewind.go reads from there.
//
// Beside this path: prepare.lua (prepare.go) runs before apply.lua at a board's birth (the board is put into the index
// of ends first, in which the controller finds it, index.go), at each turn of its orders, and when something else has
// changed the board; adopt.go adds up large boards, and adopts those whose sum a sidecar found wrong. order.go has the
// records of orders and the scripts' replies.
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
