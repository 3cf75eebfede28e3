// Package reads (no public API) answers reads of boards from the ledger while Redis is away: the server
// beside a ledger and the client in a sidecar.
//
// A read's path, in order: the [Client] (client.go) takes the place of Redis for a sidecar and posts a [Request]
// (messages.go); the server (server.go) bounds how many ask the database at once; a reader (reader.go) answers from one
// snapshot of the board, which the ledger has proved (proofs.go), or from its final.
package reads
