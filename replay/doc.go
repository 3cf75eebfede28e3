// Package replay (no public API) fills boards from Kafka, decides when each may be read, and keeps
// comparing them with Redis. [New] is the entry function.
//
// # One update, in the order of the code
//
//  1. consumer.go: one goroutine polls the Kafka clients (kafka.go, readers.go) and puts records
//     into batches.
//  2. dispatch.go: one goroutine decodes a batch, groups its updates by board and
//     gives each board's to its replica, while the consumer fills the next batch.
//  3. replica.go: the replica has its intake (intake.go) drop updates of another run, put
//     early ones into the reorder buffer (reorder.go) and apply the rest to the [Board],
//     which takes an update of an open board only if it gives the checksum that it carries.
//  4. dispatch.go: the partitions advance, and the publisher has the replicas of open
//     boards published, at most every [Config.PublishEvery].
//
// # Which topics
//
// [Runner.Follow] names the boards; the membership (membership.go) starts and drops them. About once a second the topic
// watcher (topics.go) describes the topics of just those boards and has the consumer assign their partitions, from the
// first offset or from where the boards' files end (topic.go). There is no consumer group and nothing is committed, so
// no broker delays the start and no old record comes again because a topic was created. A board with seqs is read from
// a topic of one partition: others are refused. Boards of a class and day may share a topic: it is read from where the
// earliest of them begins, and one that is named later joins the reading where it is, so that Redis has its beginning.
// A changed id shows that a topic was deleted and recreated: its boards, and no others, are then reset.
//
// # Opening and proving
//
// Every board has a gate (gate.go), a goroutine that gets the next step from decide (decide.go) and takes it: wait,
// compare checksums with Redis and open the board if they are equal (prove.go), or load the board because the log can't
// give it (fill.go). A board of which neither has anything opens empty. Boards without a checksum are compared by a
// sample (compare.go). The totals poller (totals.go; pace.go decides when) reads the states of all boards: the gates'
// targets, the age of an open board, whether it keeps up and is still equal. A board whose period is over lingers
// (linger.go): it comes from Redis alone if it is named then, and once closed is settled. The walker (walk.go) compares
// open boards row by row, the auditor (foreign.go) those without seqs. A part that finds a board wrong reports a fault
// (fault.go): the board is closed at once, and its gate fills it again, alone. The saver (saver.go) writes open boards
// to files, from which the next process starts, and a keeper's to the fleet's snapshots: a board begins with the newer
// one (restore.go).
//
// # Ownership
//
// A feed (membership.go) is one followed board. Of its parts the replica (replica.go, replica_state.go; the intake is
// its own), sources, fileState, status and auditStats are shared and have a lock each; the others belong to one
// goroutine. Lock order: membership, replica, then any one of the others. Nothing waits for the network with one held.
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
