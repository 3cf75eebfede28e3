// Package localboard keeps whole boards in memory, ordered exactly as a Redis sorted set, with one writer at a time and
// any number of readers that never take a lock. The entry function is [NewBoards]: [Boards.Create] makes a board to be
// filled, [Boards.Open] lets readers find it.
//
// # Update
//
// [Board.Apply] drops duplicates: updates whose seq is in the board's seqSet or, without a seq, whose order id is in
// orderIDs (dedup.go). It finds or adds the member's record (members.go, records.go) and appends the new score to the
// list of changes; two updates of a member between two publications are one change (apply.go). Before the first
// publication there are no readers and no index: scores are written to the hash table at once.
//
// # Publication
//
// [Board.Publish] applies the changes to the index (publish.go), freezes it as a ranking, and stores a pointer to a new
// view: ranking and members of one moment, whose top the first reader makes. The index is a three-level counted B+ tree
// whose root is a slice: inner nodes of up to 31 leaves, leaves of up to 31 rows (index.go, node.go), each row a handle
// and its sort key (sortkey.go). A node that readers may use is copied before it is written; the garbage collector
// frees a version when its last reader has finished. The first publication sorts the whole board, while updates go on:
// what they change waits in the list. [Board.Load] (load.go) does it in pieces, so that nobody waits for a large board.
//
// # Read
//
// A read loads the view. A page walks its ranking (view.go, whole.go). A standing takes the member's score from the
// hash table, searches its row in the ranking by it, and then compares the record's id; [Board.Publish] explains why
// score and ranking are of the same moment. A board is larger than a core's cache, so the cost of a standing is its
// cache misses: two in a row, for the hash table and for the leaf.
//
// # Memory
//
// Nothing per member holds a pointer: records with their ids are in large blocks, and hash table and index hold
// numbers, so that the garbage collector has next to nothing to scan. What one of them has is not in another: a record
// has the id and what decides about updates, the table the score, the index where that score stands. At the first
// publication the table is made as small as the board allows, and leaves nearly full; then the table grows by an eighth
// at a time. A removed member keeps its record, as a tombstone, while an older update of it may still arrive; then a
// compaction copies what is left into new storage (compact.go), while readers finish in the old.
//
// # Glossary
//
//   - record, handle, tag: a member's id and seq; the record's place; half of its id's hash
//   - sort key: score and first bytes of the id, as numbers that sort as rows do
//   - change: a score that is applied and not yet published
//   - ranking: an immutable version of the index; view: a ranking with members, and a top once it is asked for
package localboard
