// Package live makes streams of a board's page: the page, then what has changed in it. It
// knows no protocol: the rpc listener sends what it makes as server-sent events and as
// messages of Connect.
//
// A change of a board reaches its watchers so: a publication of the local board or a refresh
// of the hot page calls [Hub.Changed], which wakes the board's encoders (hub.go); one goroutine
// gives turns to those that are woken (loop.go), in which each reads the page (encoder.go) and,
// if it differs, makes a version of it (version.go), which its streams (stream.go) get as the
// page or as a diff of the version that they had sent last. Encodings are shared by all streams
// of a key (event.go). A stream is either notified, and polled by whoever notifies it, or waited
// for by a goroutine.
//
// Words: a key is what streams have to have in common to share an encoder; a version is the
// page at one moment; a small board is one that Redis answers, and is read once a second.
package live
