// Package origin reads boards from Redis, the system of record. All that it writes
// there is a request to a writer to add up a board again ([Origin.Readopt]), and ladders ([Origin.Ladder]).
//
// The path of a call, in order: [Dial] makes the client from a URL (dial.go). An [Origin] is six readers of one link:
// reader for queries (read.go), bulkReader for the states of many boards (scan.go, stamps.go), scanner for all of a
// board (scan.go), auditor for the comparison with a copy (audit.go), sizer for the search of large ones (sizes.go),
// and ladderMaker for approximate ranks (ladder.go). Each names the keys of its boards and sends one round trip
// (origin.go). It uses MULTI if the commands are known in advance, and a read-only script if a command needs an earlier
// reply or several boards share a pipeline (script.go, *.lua); reply.go converts replies to domain types; errors.go
// tells an unreachable Redis from one that refuses. [Replicas] reads from replicas beside the primary or the primaries
// (replicas.go), each by a follower (follower.go), with a proof of what each round trip is of (fence.go).
// [Log] reads the log of changes that writers keep in Redis (log.go).
// A client of Dial holds back the calls of the background while a master is busy (budget.go, budget_hook.go).
//
// Whatever one reply tells of one board is of one instant: its rows, its number of
// members and its state belong together.
//
// # Glossary
//
//	meta          what Redis keeps of a board beside its members ([rankcache/wire.Meta])
//	total source  where Redis keeps the state: the meta, another key (a seq), or nowhere
//	stamp         state, members and time of a reply
//	sample        members of a board with which a copy is compared
//	link          the client, the names of keys and the time-out of all readers
//	script        a read-only Lua script, run once per board
//
// Start reading at [New].
package origin
