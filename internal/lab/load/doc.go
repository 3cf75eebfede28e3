// Package load sends a server one request again and again and measures the answers.
//
// The path of one request, in this order:
//
//	drive_linux.go  Run: connections are opened, warmed up and driven for a window:
//	            every free connection at once (closed loop), or by a timetable that
//	            does not wait for answers (paced)
//	conn_linux.go   one connection: write a request, read until its reply is whole
//	http.go     what a whole reply is, in HTTP/1.1
//	resp.go     the same in Redis's protocol
//	cpu_linux.go    CPU of the servers' processes in the window, and the cores of
//	            servers and load
//	result.go   what is reported: rate, CPU per request, latencies, errors
//
// The loop is one thread over epoll with non-blocking sockets, two system calls
// a request, so that a server on another core is what saturates. Requests are
// composed beforehand and nothing is allocated while it runs. A reply that is not
// what was announced (status, length) is an error and never a success.
//
// # Pace
//
// A paced run gives the i-th request a time in the i-th interval, whether or not
// earlier ones were answered, and measures from that time: a server that stalls
// is charged with every request that was due meanwhile (no
// coordinated omission). An urgent one is not charged with what the load itself is late.
//
// It needs Linux: epoll, /proc/<pid>/task/*/schedstat, sched_setaffinity and sched_setattr.
// Elsewhere every function returns [errors.ErrUnsupported].
//
// Entry: [Run].
//
// Words: a target is the server's address and protocol; a question is the request and
// the reply that is expected; a window is the measured time.
package load
