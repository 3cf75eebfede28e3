// Package conn is the connections of a protocol that is read often: the socket, the time-outs of slow clients, and
// hooks that may answer a request before the protocol's parser sees it. It knows no protocol.
//
// The path of a request, in this order:
//
//	conn.go     Conn.Read: deadlines, then the socket, then the hooks, which decide how much of
//	            it the parser gets; the rest is held until it reads again
//	socket.go   the read itself, without telling Go's scheduler of the system call
//	rawcall.go  that system call, on Linux on amd64 and arm64; elsewhere, and for what
//	            is no socket, net.Conn is used (socket_other.go)
//	clock.go    the coarse time by which deadlines are set and idle connections found
//	            apart; how many there may be is for httpserve.Conns
//	conn.go     Conn.Write or Conn.WriteBoth: the answer, by one system call;
//	            Conn.Linger behind one that the client may still be too busy to read
//
// Entry: [Conn.Open].
//
// Words: a hook is called with a request's bytes; the coarse time is up to half a second
// old; a place is the stage of a connection and since when.
package conn
