// Package replay fills boards from Kafka, decides when each may be read, and
// keeps watching that it stays right.
//
// # One update
//
// The reader polls the consumer and puts records into batches (reader.go). The
// pump decodes a batch, groups it by board, applies each group and notes how far
// every partition has come (pump.go); while it does, the reader fills the next
// batch on another core. Boards that are readable are published at most every
// [Config.PublishEvery].
//
// # Which topics
//
// [Runner.Follow] names the wanted boards, the roster creates and drops them
// (roster.go). About once a second the catalogue asks Kafka for the topics of
// just those boards and assigns their partitions, from the first offset to be
// had (catalogue.go). There is no group and nothing is committed, so no broker
// delays the start and no old record comes again because a topic was made. A
// topic's id tells when it was deleted and made again; its boards, and no others,
// then begin anew.
//
// # The gate
//
// Every board has a gate (gate.go). It looks at how far the log and the board
// have come and at what Redis says, asks decide (decide.go) for the next step
// and takes it: wait, compare a sample with Redis (compare.go), load the board
// from Redis because the log can't give it (snapshot.go), or open it.
//
// # The audit
//
// Every [Config.TotalsEvery] the totals of all boards are read from Redis in one
// round trip (totals.go): a gate learns from them what it has to reach, and an
// open board how old it is and whether it still keeps up (watch.go). Every
// [Config.AuditEvery] a gate compares its open board with rows and members of
// Redis (audit.go, without seqs doubts.go); judge.go tells why live writes are
// never taken for a difference. Single members are repaired (repair.go). Anything
// else is a fault (fault.go), as is a seq that comes again as another order
// (history.go): the board is closed at once and filled again, alone.
//
// # Locks
//
// [Runner]'s mutex guards the roster; a follower's (follower.go) guards its state.
// The first may be held while the second is taken, and the second while the
// board's own methods are called. Nothing blocks on the network with one held.
//
// Only kafka.go knows the Kafka client.
package replay
