// Package live (no public API) makes streams of a board's page: the page, then what has changed in it. It knows no
// protocol: the rpc listener sends what it makes as server-sent events and as messages of Connect.
//
// A change of a board reaches its subscribers so: a publication of the local board or a refresh of the hot page calls
// [Hub.Changed] (hub.go), which signals the board's publishers. A publisher (publisher.go), one goroutine for each key,
// reads the page (page.go) and, if it differs, makes the next version of it (version.go). Its subscribers
// (subscriber.go), each in a goroutine of the caller, then get the newest version, as the page or as a diff from the
// version that they had last. A diff is encoded once for all of them (encoding.go).
//
// Words: a key is what subscribers have in common that share a publisher; a version is the page
// at one moment; a small board is one that Redis answers, and is polled.
package live
