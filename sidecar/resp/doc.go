// Package resp (no public API) answers clients of Redis, so that an app reads its boards here with the
// client that it has. What the copies here can't answer passes on to Redis.
//
// What a connection's bytes pass, in this order:
//
//	session.go      session.serve: reads, answers all complete commands, writes once
//	buffer.go       buffer: room for what was read, also for large commands, counted by held.go
//	frame.go        parser: commands, with limits; malformed ones end the connection
//	commands.go     what becomes of a command, by its name
//	form.go         parseForm: the well-formed reads of one key
//	answer.go       answer: the reply from a copy of the board, as Redis gives it
//	kept.go         kept: replies are encoded once for each top
//	split.go        reads of boards that are kept as shards, of which nothing is passed on
//	agree.go        settle: rows of a hot board, and what Redis has of a member that is not among
//	                them, are of one page
//	handshake.go    handshake: HELLO, AUTH and others, answered here and repeated to the upstream
//	passing.go      pass and finishRun: all else goes to the upstream, a run of commands at
//	                once, and nothing is answered here until its replies are passed back;
//	                transaction: whether MULTI or WATCH is in force
//	writes.go       writes: which keys this connection has written to; writeGuard: refused ones
//	logged.go       passLogged: a write of a board whose log is in Redis becomes a call of
//	                logged.lua, which runs it and adds up and logs what it changes
//	upstream.go     the connection to Redis, opened with the first command that needs it
//	reply.go        replies: counts what the upstream sends
//
// learner.go has a connection of its own learn the facts.go of the upstream: which
// commands it knows. server.go has the listener, its limits and its drain.
//
// A parser of our own, not a library's: commands that pass on need their bytes, the errors of malformed frames are
// Redis's, and a command may be cut anywhere without being parsed again from its beginning.
//
// Entry: [New], then [Server.Serve] and [Server.Run].
//
// Words: a form is a well-formed read of one key; a run is commands that are passed on
// together; facts are what was learned from the upstream; a greeting is what a client
// set before its first command; a relayed connection is passed on until it is closed.
package resp
