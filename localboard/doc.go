// Package localboard keeps whole boards in memory, ordered exactly as Redis
// orders a sorted set, with one writer and any number of readers that never
// take a lock.
//
// # One update
//
// [Board.Apply] looks each update up in seen (has this seq been counted?) or in
// orders (has this order number?), finds or adds its member in members, and
// notes the new score in the list of changes. Two updates of one member between
// two publications are one change. Before the first publication there are no
// readers and no order is kept: the score goes straight into the member's record.
//
// # One publication
//
// [Board.Publish] carries the changes into the order, freezes it as a ranking,
// and puts a new view in place: ranking, members and top of one moment. The order
// is a tree of three levels: the spine, shelves of up to 31 chunks, chunks of up
// to 31 rows; a chunk or shelf that a reader may see is copied before it is
// written, into one that nobody reads any more (hold.go, spares.go). Now and then
// the writer lets readers go first (giveway.go). The first publication sorts
// everything once.
//
// # One read
//
// A read loads the view, once. A page walks its ranking. A standing finds the
// member's score by hash and with the score its row in the ranking, and then looks
// whether the record has the id that was asked for; publish.go tells why score and
// ranking always belong together. A board is larger than a core's cache, so that
// what a standing costs is how often it waits for memory: twice, for the hash table
// and for the chunk.
//
// # Memory
//
// Nothing per member holds a pointer: records with their ids lie in large blocks,
// the hash table and the order hold numbers, so that the collector has next to
// nothing to walk. A removed member keeps its record for as long as an older
// update of it could still come; then the board moves what is left into new
// storage (move.go), while readers finish with the old.
package localboard
