// Package final (no public API) makes the results of closed boards: what prizes are paid from. A final is
// made of Redis once the ledger has the same members with the same scores, is kept in the
// ledger's database and in a file of all members, and is never changed.
//
// The path of a board: [Finalizer.Final] (final.go) reads all of it from Redis and compares it with the ledger
// (compare.go), of a split board each of its shards (split.go), writes the file (parquet.go) to a folder or a bucket
// ([Files]), saves the final in SQL and returns the record of the topic of finals, which the controller publishes.
package final
