// Package httpapi (no public API) is the data port: boards and profiles as JSON over HTTP/1.1, on fasthttp.
//
// A GET of a top page passes, in this order:
//
//	../internal/conn  Conn.Read: deadlines, and the read of the socket (conn.go, socket.go)
//	requestcache.go   OnBytes: bytes that came before are answered here, if their page is
//	                  kept; else a recorder finds out whether they are one request
//	frame.go          everything else: where a head or body ends; malformed lines are refused
//	server.go         parsed by fasthttp: version, Host, panics
//	request.go        path to route, board and member, percent-decoded
//	args.go           query arguments, each checked and named when it is wrong
//	classes.go        by class: the period, and the id of the board; from here on as by board
//	handlers.go       Server.read: read, encode, send, record
//	../reader.go      Reader.Read: the tier, the source, the rows
//	pagecache.go      the encoded page that is kept for them; one that is not there is
//	                  encoded once
//	encode.go         by ../internal/encode, with the profiles of the page before (pagecache.go)
//	response.go       ETag and 304, content coding (bodies.go, once), age
//	counters.go       the request is counted and measured
//
// and leaves by clientConn.Write (conn.go), which sets the date. A kept page costs neither a lock nor an allocation:
// strings of the request share its memory until it has been answered. Several pages are several queries of one read;
// the ranks in the period before are read by another; bodies.go parses what is posted; changes.go gives the writer what
// changes boards, if this process has one.
//
// selftest.go checks at construction that fasthttp behaves as the request cache relies on;
// config.go has limits and settings.
//
// Entry: [New], then [Server.Serve].
//
// Words: a call is the state of one request; the request cache maps bytes to parsed requests, the page cache has
// encoded pages; an entry is one of these; the previous page is that of the board's last top, whose profiles are
// reused; a body is an encoded page with its content codings.
package httpapi
