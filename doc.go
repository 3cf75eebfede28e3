// Package rankcache holds the domain types of rankcache, a sidecar that answers leaderboard reads from local memory:
// board and member ids, query and answer, entries, standings, tops, replay progress and the errors by which callers
// decide. It does no I/O and starts no goroutine.
//
// The ground floor is this package, wire, class and rooms, each of which imports only those before it. On it stand the
// peers, none of which imports another, and the rooms of the command wire them: docs/ARCHITECTURE.md has the table,
// which a test of this package checks, and docs/WORDS.md the words.
//
// # One read
//
// A [Query] asks for rows and members of one board; whoever can answer has [Reader.Read]. The tier of a board is one
// lookup in [rankcache/rooms.Tiers]. An open super-hot board and a hot board answer from immutable rows, got by one
// atomic load; any other board is read from Redis.
//
// # One update
//
// A command changes a score in Redis and gets the board's next seq there. The resulting [rankcache/wire.Update] travels
// on the board's Kafka topic; each sidecar decodes it, applies it to its copy and publishes a new *Top.
//
// Start reading at [Query].
package rankcache
