// Package replay (no public API) fills boards from Kafka, decides when each may be read, and keeps
// comparing them with Redis. [New] is the entry function.
//
// # The way of the data, step by step
//
// Each file calls those after it and none before it; what it finds it returns.
//
//  1. What is followed: runner.go starts the parts, each a goroutine; membership.go starts and drops boards.
//  2. Which topics: topics.go compares them with Kafka's, topics_begin.go finds where reading begins.
//  3. Records: consumer.go puts records of the log (log.go) into batches: of Kafka (kafka.go, readers.go),
//     or of Redis (stream.go).
//  4. Updates: dispatch.go decodes a batch, groups it by board and gives each board's to its replica, while the consumer
//     fills the next one. Then the partitions advance, and open boards are published, at most every [Config.PublishEvery].
//  5. Opening: gate.go is a goroutine for each board. gate_decide.go tells its next step, gate_open.go takes it:
//     gate_prove.go compares checksums with Redis, fill.go loads the board from a file or from Redis.
//  6. Redis's totals: totals.go decides when they are read, and whether a keeper's will do; totals_written.go has those
//     of boards that were written through this process read at once; totals_read.go reads them and tells which boards
//     Redis has lost; totals_learn.go gives them to the boards.
//  7. Audit: foreign.go, of boards without seqs, and walk.go, row by row, by what compare.go finds.
//  8. Out: saver.go writes open boards to files and snapshots; report.go has metrics and progress.
//  9. The board: feed.go has all that belongs to one. replica_fill.go and replica_open.go fill, open and close it;
//     in replica.go an update is applied and published: intake.go drops those of another run, has early ones wait in
//     the buffer of reorder.go, and gives the [Board] the rest, which takes an update of an open board only if it
//     gives the checksum that it carries.
//  10. What is known of a board: status.go (for operators), lag.go (over several looks at Redis), sources.go (from
//     Kafka, Redis and its file), topic.go (how far its log is read), fault.go (why it is wrong).
//  11. The ground: metrics.go, pace.go (when a keeper is heard), wait.go, config.go, and ports.go, what is asked of others.
//
// # Which topics
//
// About once a second the topic watcher describes the topics of just the followed boards and has the consumer assign
// their partitions, from the first offset or from where the boards' files end. There is no consumer group and nothing
// is committed, so no broker delays the start and no old record comes again because a topic was created. A board with
// seqs is read from a topic of one partition: others are refused. Boards of a class and day may share a topic: it is
// read from where the earliest of them begins, and one that is named later joins the reading where it is, so that Redis
// has its beginning. The log in Redis is such a topic: a board begins where its file ends, or joins. A changed id
// shows that a topic was deleted and recreated: its boards, and no others, are then reset.
//
// # Opening and proving
//
// A gate waits, compares checksums with Redis and opens the board if they are equal, or loads the board because the log
// can't give it. A board of which neither has anything opens empty. Boards without a checksum are compared by a sample.
// The totals are the gates' targets, and tell the age of an open board, whether it keeps up and is still equal. A board
// whose period is over lingers: it comes from Redis alone if it is named then, and once closed is settled. A part that
// finds a board wrong reports a fault: the board is closed at once, and its gate fills it again, alone. A board begins
// with the newer one of its file and the fleet's snapshot.
//
// # Ownership
//
// A feed is one followed board. Of its parts the replica (the intake is its own), sources, status and auditStats are
// shared and have a lock each, fileState is two pointers that are loaded; the others belong to one goroutine. Lock order: membership, replica, then
// any one of the others. Nothing waits for the network with one held.
//
// # Glossary
//
//   - gate: decides when a replica may be read; after a deadline Redis answers instead.
//   - state: a board's run (which life of it), seq (1, 2, 3 …) and checksum.
//   - epoch: how long findings about a replica hold: until it is reset or refilled.
//   - fault: proof that a replica is wrong; suspected: the board is compared with Redis first.
//   - settled: open, and equal to a closed board: no update changes it, and no look but for its final.
//   - stale: answered from a file of an earlier process, because Redis can't answer.
package replay
