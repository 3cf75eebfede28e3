// Package load asks a server one question over and over and measures the answers.
//
// The path of one request, in this order:
//
//	run.go      Run: connections are opened, warmed up and driven for a window
//	drive.go    who may ask when: every free connection at once (closed loop), or
//	            by a timetable that does not wait for answers (paced)
//	conn.go     one connection: write a request, read until its reply is whole
//	http.go     what a whole reply is, in HTTP/1.1
//	resp.go     the same in Redis's protocol
//	cpu.go      what the servers' processes spent on the window
//	pin.go      which cores the servers and the load have
//	result.go   what is reported: rate, CPU per request, latencies, errors
//
// The loop is one thread over epoll with non-blocking sockets, two system calls
// a request, so that a server on another core is what saturates. Requests are
// composed beforehand and nothing is allocated while it runs. A reply that is not
// what was announced (status, length) is an error and never a success.
//
// # Pace
//
// A paced run gives the i-th request the time start + i/rate, whether or not
// earlier ones were answered, and measures from that time: a server that stalls
// is charged with everything that should have been asked meanwhile (no
// coordinated omission).
//
// It needs Linux: epoll, /proc/<pid>/task/*/schedstat and sched_setaffinity.
// Elsewhere every function returns [errors.ErrUnsupported].
package load
