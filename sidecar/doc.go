// Package sidecar reads boards for the app beside it: from a whole local copy, from the
// refreshed top page of a hot board, or from Redis. The protocols that serve its answers
// are packages of their own: httpapi (the data port) and adminapi (probes, status,
// metrics). Go programs that embed rankcache use [Reader] directly.
//
// A read of a page passes, in this order:
//
//	reader.go  Reader.ReadPage
//	place.go   the tier of the board (decide is pure), by one load of the operator's tiers
//	           and one look-up each of local board and hot page
//	bounds.go  only with max_age_ms, min_seq or min_state: is the copy fresh enough, or soon?
//	minstate.go  only with min_state: has the board been through that state?
//	reader.go    local  rows of the board's *Top, or of its ordered set beyond that
//	             hot    rows of the refreshed *Top
//	flight.go    redis   one flight per query, few at once, a bounded queue
//	fallback.go  ledger  while Redis is away, in the same flight
//	pages.go   Reader.Pages, the top cache: what a protocol keeps for the *Top that the rows are from,
//	           such as encoded answers
//
// whole.go reads a page together with a member and what stands next to it, and several
// boards at once: [Reader.WholePage], [Reader.Batch]. It also
// counts shared ranks on a hot top, and refuses dense ones.
//
// trimmed.go adds the scores of members without a rank to all answers about members, on
// boards that keep their best members alone.
//
// A read from a *Top takes no lock and allocates nothing. The ids of a query may be the
// memory of a request, which is why [Boards], [Board] and [Hot] must not keep them.
// Ids that go to Redis are copied first, because a flight may outlive the request that
// began it.
//
// config.go has the interfaces that a Reader reads from, query.go what it takes and
// returns, openapi.go the HTTP reference of all ports.
//
// Entry: [NewReader], then [Reader.Page].
//
// Words: a tier is where a board is read now; a flight is one call to Redis that callers
// share; a bounded query limits how old its answer may be; pages are what protocols keep
// for one top; a slot is the place of one protocol in them.
package sidecar
