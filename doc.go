// Package rankcache holds the words and the wire of rankcache, a sidecar that
// answers leaderboard reads from local memory: what a board, a member, an
// update and a top are, how they are written in Redis, Kafka and the rooms
// file. It does no I/O and starts no goroutine.
//
// The module is a star. Every folder imports this package and none of its
// sisters; only cmd/rankcache knows them all:
//
//	localboard        whole boards in memory: ordered set, dedup, immutable tops
//	replay            Kafka to boards: consume, decode, apply, the gate
//	lastgood          boards in files, to begin again from
//	admission         which boards fit the memory budget
//	hotkey            which boards are hot, and their refreshed tops
//	profile           member to nick and avatar: read-through cache
//	sidecar           what the app sees: tier decision, read path, HTTP
//	operator          the page that operators look at
//	internal/origin   reading Redis, the system of record
//	internal/writer   the write side: command, Lua script, update
//	internal/rooms    following the rooms file and the boards of its rooms
//	cmd/rankcache     flags, wiring, signals; the only place where they meet
//
// # One read
//
// The tier decision is one load of [Tiers]. A super-hot board that is open
// hands out its [*Top] with one atomic load; a hot board likewise; any other
// board is asked of Redis. The page encoded for a *Top is kept until
// there is a newer one, so a second reader only writes bytes; its profiles go on to
// the page of the next *Top.
//
// # One update
//
// A command changes a score in Redis and there receives the board's next seq.
// The [Update] that says so travels on the board's topic; [DecodeUpdate] reads
// it, the board's only writer applies it, and a new *Top is published.
package rankcache
