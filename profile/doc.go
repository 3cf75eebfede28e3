// Package profile (no public API) joins nick and avatar to members: a read-through cache before the service that owns
// the profiles. A profile is an opaque JSON object, kept byte for byte. The entry function is [Cache.Join].
//
// The path of a page, in this order:
//
//	cache.go    Join or Get: one lookup per row, without lock or wait
//	store.go    ristretto has the places of the entries, slabs.go their bytes
//	            (cache.go); an entry is
//	              fresh    the page uses it
//	              stale    the page uses it, and a background call refreshes it
//	              absent   the page waits for a flight, until its deadline
//	loader.go   one flight per member, however many pages wait for it; the flights
//	            of one page are one call; calls of pages precede background calls
//	worker.go   a worker takes calls from the queue (flight.go), asks the source
//	            through a circuit breaker (breaker.go), stores the results, raises
//	            the members' revisions and wakes the waiting pages
//	source.go   the interface of sources: http.go (answer.go decodes), redis.go
//	flight.go   whether an encoded page is still fresh
//
// # Kept pages
//
// The caller keeps the function that [Cache.Join] returned with the page that it encoded, and calls it before using the
// page again, which takes about a tenth of a microsecond. The page's stamp holds the revision of each row's group of
// members, when the first row is due for another lookup, and the total revision at which the rows were last checked. A
// false answer means "join again", which also starts the refresh of expired profiles. It is always given when one of
// the page's own profiles was loaded, refreshed or dropped, and sometimes (one change in 16,384 per row) because of
// another member of the same group.
//
// # Limits of ristretto
//
// A Set may be seen late, be dropped, or lose to an older one that is still queued; an entry may be refused. So all
// writes are made by one goroutine at a time, which waits until they are applied (store.go), entries carry a version,
// waiting pages take their profiles from the flight and not from the cache, and a refused entry is kept with its flight
// as a recent result, so that a full cache does not turn every page into a load.
//
// # Memory that the collector scans
//
// Half a million entries that are each a block of memory cost a collection 90 ms of processor time, during which
// requests on one or two processors wait for tens of milliseconds. So entries are stored one behind the other in slabs
// of 64 KiB, and ristretto has numbers that give their place, not pointers: 17 ms, nearly all of them for ristretto's
// maps (BenchmarkCollect). Entries never change; when released entries take more than a 32nd of the slabs, the live
// entries of the emptiest slab are copied to another one, and the collector frees the old slab when no profile in it is
// in use.
//
// # Lock order
//
// There is one lock, loader.mu: it guards flights, queue and every write to the
// store. Pages whose profiles are all cached and fresh never take it.
//
// # Words
//
//	entry     a cached profile, or the knowledge that a member has none
//	flight    the one load of a member that several pages may wait for
//	call      flights that are loaded together, at most a batch
//	revision  how often the profiles of a group of members have changed
//	slab      64 KiB of memory that holds entries; handle: a place in a slab
package profile
