// Package sidecar reads boards for the app beside it: from a whole local copy, from the refreshed top page of a hot
// board, or from Redis. The protocols that serve its answers are packages of their own: httpapi (the data port) and
// adminapi (probes, status, metrics). Go programs that embed rankcache use [Reader] directly.
//
// A query ([rankcache.Query]) passes, in this order:
//
//	reader.go    Reader.Read: the list of the sources, each of which holds the next one
//	ownwrites.go only where boards are written through this process: members that were are read with
//	             the state of their last write as a bound
//	trimmed.go   the scores of members without a rank, on boards that keep their best alone
//	copies.go    by the operator's tier the open board, else the hot page; blocked boards end here
//	split.go     only boards that are kept as shards: each is a query of its own, and their answers
//	             are merged; split_own.go adds where members stand in the other shards,
//	             split_deep.go has pages beyond the first rows
//	bounds.go    only with max_age_ms, min_seq or min_state: is the copy fresh enough, or soon?
//	minstate.go  has what bounds compares: has the board been through a state?
//	ladders.go   only for approximate ranks: the board's ladder, if there is one
//	flight.go    Redis for all, or for members that the hot page lacks: one flight per
//	             query, few at once, a bounded queue
//	finals.go    the finals of ended boards that Redis does not have
//	fallback.go  Redis, or the ledger while it is away
//
// recent.go keeps what trimmed.go and ownwrites.go know of members for a time. former.go reads trends, ranks on the board
// of the period before, by queries of their own.
//
// A read of the first rows of a board in memory takes no lock and allocates nothing. The strings of a query may be the
// memory of a request, which is why [Boards], [Board] and [Hot] must not keep them. What goes to Redis is copied first,
// because a flight may outlive the request that began it.
//
// config.go has the sources that a Reader reads from, query.go its limits and errors,
// and the HTTP reference of all ports.
//
// Entry: [NewReader], then [Reader.Read].
//
// Words: a tier is where a board is read now; a flight is one call to Redis that callers
// share; a bounded query limits how old its answer may be.
package sidecar
