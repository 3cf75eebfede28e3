// Package load sends a server one request again and again, by programs that Debian packages, and measures the answers.
//
//	load.go            Run: what is sent, how, and what one run showed
//	h2load.go          HTTP, by h2load (package nghttp2-client): as fast as the server answers, or by a timetable
//	timetable.go       latencies from h2load's log, of late requests from when they were due
//	redis.go           RESP, by redis-benchmark (package redis-tools)
//	ask.go             one request, to see that its answer is right
//	cpu_linux.go       CPU time of the servers' processes, and the cores of servers and load
//	streams_linux.go   thousands of event streams read by one thread
//
// Kept, as no packaged program has it: streams_linux.go, because h2load tells nothing of answers that do not end, and
// a goroutine for each stream would take most of a core to be woken; and CPU times by thread, because a process's own
// counter has steps of 10 ms.
//
// h2load takes about as much CPU for a page as nginx: a server that answers in less is not busy all the time
// ([Result.Busy] says how much), sleeps between requests and pays for being woken. The rate is then the load's,
// and CPU a request up to 1.5 times that at full rate; compare servers by CPU a request within one run.
//
// It needs Linux: /proc/<pid>/task/*/schedstat and sched_setaffinity.
//
// Words: a target is the server's address; a question is the request and the reply that is expected.
package load
