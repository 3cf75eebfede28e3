// Package roomsync follows the rooms that operators configure and publishes them as [rooms.Tiers].
//
// One poll, in order: it reads the rooms file and the Redis hash that all sidecars share, in which operators set rooms
// (sources.go, hash.go) and classes (classes.go) at run time; it finds the boards of the classes' periods, which end
// and begin; it reads from Redis the boards of the rooms that name none (sources.go); if anything differs, it merges
// file, classes and hash, the file winning (merge.go), resolves and publishes the result (follower.go). Bypasses are in
// the hash, too, and end by the clock at a poll, whether Redis answers or not (follower.go). [Follower.Run] polls about
// every [DefaultEvery]. The process on which a room is set (http.go) publishes at once.
//
// # Locks
//
// Follower.pollMu is held for a whole poll, Redis round trips included, so that one poll never overwrites a newer one.
// Follower.mu guards the status and is taken with pollMu held; nothing is called with it held.
//
// # Glossary
//
//	rooms file       the reviewed configuration of rooms and boards
//	dynamic entry    a room or board set at run time, a field of the shared hash
//	document         of classes set at run time, one field of the shared hash
//	running boards   the boards in a room's Redis set
//	resolved         all sources were read once, or Redis failed a few polls
//
// Start reading at [New].
package roomsync
