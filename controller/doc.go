// Package controller (no public API) ends the life of boards: it closes them after their period, and deletes the topics
// of those that are gone. Redis expires the keys itself, at a time that the writer sets at a board's birth.
//
// One of several controllers works, elected by a lease (controller.go). Once a second it looks which boards of the
// index of ends are due (close.go): a board is due when its period and the class's grace are over. It sets the board's
// life to closing (life.lua), and to closed when nothing that came in time can be missing: the controller appends a
// marker to each partition of the command topic (kafka.go), and the writers' group has committed all of them, or, for
// durable classes, all masters of Redis tell that they have what is before (pass.go); the time-out of posts has passed.
// Then the ledger, if there is one, makes the final. The index keeps a durable board for two minutes more, in which a
// failover may take its close back (life.go).
//
// Once a minute it looks at the topics of boards (topics.go): those of a class go after
// the end of their last period and keep, once Redis has expired the board; others when
// Redis has not known the board for a time that operators choose.
//
// Every few seconds it looks at the boards of rolling classes (primer.go), which are sums of the boards of several
// periods: what ended periods give each member it sends as one command, a prime (primes.go), and marks the board once
// Redis tells that it has them all (primed.lua). Primes that are sent again are known until then, and refused after, so
// it may begin anew at any time.
//
// # Guarantees
//
// A life only moves forward, and everything else is derived from the metas, the index and the rooms file, so that two
// controllers do the same as one: a lease in Redis does not keep a paused one from writing.
//
// # Glossary
//
//	index    the sorted set of the boards that are to be closed, by the end of their period
//	due      its period and grace are over
//	marker   a record of the command topic that tells how far the writers have come
//	passed   every command that arrived before this time has been processed
//	prime    what ended periods give a member of a rolling board
//	absent   a topic whose board is not in Redis
//
// Start reading at [Controller.Run].
package controller
