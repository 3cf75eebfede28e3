// Package sidecar is what the app and the probes see of rankcache: which tier
// answers a read, the read itself, its JSON, HTTP, readiness, status, metrics.
//
// A GET of a top page passes, in this order:
//
//	conncap.go   room for the connection
//	conn.go      its reads and writes, cut off when they take long (deadline.go);
//	             a request whose bytes are known (lesson.go, repeats.go) is answered
//	             here and now (repeat.go, head.go) if its page is kept
//	frame.go     where the request ends, without a doubt
//	data.go      the Host check, panics, counting (counters.go)
//	route.go     path to route, board and member, percent-decoded
//	args.go      query arguments, each checked and named when it is wrong
//	reader.go    Reader.Page: where is the board read? (tier.go, pure)
//	               local  the board's *Top, or its ordered set behind the head
//	               hot    the refreshed top page
//	               redis  flight.go: one flight per question, few at once
//	memo.go      the page encoded for this *Top, kept with it; made once by
//	             page.go (and join.go, when profiles are asked for)
//	me.go        the caller's own standing, written behind the kept bytes
//	send.go      ETag and 304, compression (body.go, pack.go), the headers that
//	             change by themselves; problem.go for all that is refused
//
// A cached top is answered without a lock and without an allocation: strings
// taken from the request share its memory, which is why [Boards], [Board] and
// [Hot] must not keep what they are asked for. Whatever goes to Redis is copied
// first, because a flight may outlive the request that began it.
//
// [Reader] is the same path without HTTP, for Go programs that embed rankcache.
//
// ready.go, health.go, admin.go and status.go are the probes' and the
// operator's side, on net/http.
package sidecar
