// Package rpc (no public API) is the listener for live pages and for clients of Connect and gRPC, over
// HTTP/1.1 and HTTP/2 without TLS.
//
// A request passes:
//
//	server.go   Server.Serve: the listener, its limits, Host and Origin, routes
//	boards.go   the methods of rankcache.v1.Boards, handlers of connect-go
//	sse.go      arguments of a stream of server-sent events
//	board.go    boardFinder: from board or class, dimensions and time to the board
//	page.go     pageMaker: from an answer to a message; members by rank
//	rows.go     rowMaker: its rows, with ranks in a mode and in the period before
//	watch.go    watch: the events of a [rankcache/sidecar/live] stream, each written within
//	            a deadline; at the end of a period it subscribes to the class's next board
//
// [Server.Changed] signals a change of a board. The terms are those of the live package.
package rpc
