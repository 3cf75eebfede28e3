// Package profile joins nick and avatar to members: a read-through cache before
// the service that owns the profiles. A profile is an opaque JSON object, kept
// byte for byte.
//
// The path of a page, in this order:
//
//	join.go     Cache.Join or Cache.Get: one lookup per row, no lock, no wait
//	store.go    where the cached entries are, in ristretto
//	slabs.go    the entries, in slabs of memory (slab.go, entry.go)
//	              fresh    answered
//	              stale    answered, and refreshed behind the page's back
//	              absent   the rows that have to be loaded:
//	wait.go     they board flights, one per member whoever asks (flight.go), and
//	            the page waits for these, but not beyond its deadline
//	queue.go    flights of one page are one call; pages go before warm-ups
//	load.go     a worker takes calls, asks the Source through a circuit breaker
//	source.go   what is behind: http.go (answer.go reads what it said), redis.go
//	land.go     what was loaded is stored, the change is counted (change.go), the
//	            waiting pages are answered from what was just loaded
//	fresh.go    whether a page that was encoded from all this may be used again
//
// # Pages that are kept
//
// Whoever encodes a page keeps the function that [Cache.Join] returned with it
// and asks it before using the page again. It answers in about a tenth of a
// microsecond: each row remembers how often its member's group had changed when
// it was looked up, and the page remembers when its first row must be looked at
// again, and up to which change of all it has found its rows unchanged. A false
// answer means "join again", which also starts the
// refresh of what has expired; it is always given when one of the page's own
// profiles was loaded, refreshed or dropped, and now and then (one change in
// 16,384 per row) because of a stranger's.
//
// # What ristretto does not promise
//
// A Set may be seen late, be dropped, or lose to an older one that is still on
// its way; an entry may be refused altogether. So all writes are made by one
// goroutine at a time, which waits until they are applied (store.go), entries
// carry a version, waiting pages are answered from their flight and never by
// reading the cache again, and a refused entry lingers with its flight for a
// while, so that a full cache does not turn every page into a load.
//
// # What the collector walks
//
// Half a million entries that are each a block of memory cost a collection 90 ms
// of processor time, in which requests on one or two processors wait for tens of
// milliseconds. So entries stand one behind the other in slabs of 64 KiB, and
// ristretto has numbers that say where, not pointers: 17 ms, nearly all of them for
// ristretto's maps (BenchmarkCollect). Entries never change; once more than an
// eighth of the slabs was left by entries that are gone, what remains in the
// emptiest slab is copied to another one, and the collector takes the old one when
// nobody reads a profile in it any more.
//
// # Lock order
//
// There is one lock, Cache.mu: it guards flights, queue and every write to the
// store. Pages whose profiles are all there and fresh never take it.
package profile
