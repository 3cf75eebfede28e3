// Package lastgood keeps boards in files over a restart: one file per board, the
// last state that was known to be good, with the place in the board's log from
// which reading goes on.
//
// # One save
//
// [Store.Save] writes a temporary file beside the old one: a header (header.go),
// the members in blocks (encode.go) and a trailer. It is synced, renamed over the
// old file, and the folder is synced. A crash at any moment leaves the old file
// or the new one, and perhaps a temporary one, which [Store.Sweep] removes.
//
// # One load
//
// [Store.Load] reads a file from front to back (decode.go). Each part ends in the
// CRC-32C of everything before it, so that a part that is damaged, missing or in
// the wrong place is found where it stands, and nothing is kept of a file that is
// not good to its last byte. No length is believed before it is held against a
// limit. The error says by its kind what is wrong (errors.go); a file that is
// damaged is moved aside, to be looked at.
//
// # The format
//
// Version 1; integers are little-endian, those in bodies are varints.
//
//	"RANKLAST" version:u32 length:u32 body crc:u32     the header
//	length:u32 (size member score:f64)* crc:u32        a block of members, any number of them
//	0:u32 members:u64 crc:u32                          the trailer, the end of the file
//
// A file holds what the origin holds, so it is readable by its owner only.
package lastgood
