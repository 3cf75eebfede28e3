// Package rpc (no public API) is the listener for live pages and for clients of Connect and gRPC. It serves
// HTTP/1.1 and HTTP/2 without TLS.
//
// The path of a stream: [Server.Serve] checks Host; sse.go reads what is asked for and
// board.go finds the board, by its id or by its class; a watch (watch.go) passes the events
// of a [rankcache/sidecar/internal/live] stream on, and goes over to the board of a class's
// next period. Over HTTP/1.1 a pusher (pusher.go) takes the connection over, and whoever
// notifies it writes the events; elsewhere the request's goroutine waits for them. Each write
// has a deadline. What changed is told to [Server.Changed].
//
// The terms are those of the live package.
package rpc
