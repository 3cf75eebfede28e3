// Package files (no public API) keeps boards in files over a restart: one file per board, the last state that equalled
// the origin, with the offsets in the board's log at which reading continues. The entry function is [Store.Load].
//
// # One save
//
// [Store.Save] (store.go) writes a temporary file beside the previous one: a header (format.go), the members in blocks
// (encode.go) and a trailer. It syncs the file, renames it over the previous one and syncs the folder. A crash at any
// time leaves the previous file or the new one, and perhaps a temporary one, which the next process removes before its
// first load or save.
//
// # One load
//
// [Store.Load] reads a file from front to back (decode.go). Each part ends in the CRC-32C of everything before it, so
// that a damaged, missing or misplaced part is detected where it is; a file with any error is not used at all. Every
// length is compared with a limit before it is used. The error wraps the reason (format.go); a damaged file is renamed
// to end in .bad, for inspection.
//
// # Snapshots of the fleet
//
// [Shared] (shared.go) keeps the same files in a folder or bucket for many processes: a keeper
// saves them, sidecars read those that are newer than their own.
//
// # The format
//
// Version 1; integers are little-endian, those in bodies are varints.
//
//	"RANKLAST" version:u32 length:u32 body crc:u32     the header
//	length:u32 (size member score:f64)* crc:u32        a block of members, any number of them
//	0:u32 members:u64 crc:u32                          the trailer, the end of the file
//
// A file has the same content as the origin, so only its owner may read it.
//
// # Words
//
//	saved     the header of a file: board, seq, times, place in the log
//	block     members that share a length and a checksum
//	part      header, block or trailer: bytes followed by a checksum
//	foreign   a file of another board or another format
package files
