package load

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// Target is a listening server and how it is spoken to.
type Target struct {
	Network string // "tcp" or "unix"
	Addr    string // host:port, or the path of a socket
	Proto   Proto
}

// Proto is the protocol of a target.
type Proto uint8

// The protocols.
const (
	HTTP Proto = iota // HTTP/1.1
	RESP              // Redis, version 2
)

// Question is the request that is sent, and what a good reply is.
type Question struct {
	// Requests are whole requests as they go over the wire, asked in turn.
	Requests [][]byte
	// Replies is how many replies one request gets, 0 for one; more for
	// pipelined commands.
	Replies int
	// Status is the HTTP status of a good reply.
	Status int
	// Length is the exact length of a good reply's body, in bytes. 0: any but an
	// empty one, and an empty one for a status that has no body.
	Length int
}

func (q *Question) check() error {
	for _, r := range q.Requests {
		if len(r) == 0 {
			return errors.New("a request of no bytes")
		}
	}
	if len(q.Requests) == 0 {
		return errors.New("no request")
	}
	return nil
}

// Config is one run.
type Config struct {
	Target      Target
	Question    Question
	Connections int
	// Warmup comes before the window and counts for nothing.
	Warmup, Window time.Duration
	// Rate is requests a second. 0: as many as are answered.
	Rate float64
	// Urgent has the load go before all other threads of its core, if the system allows
	// it: what it measures is then the server's delay and not its own. What it sends late
	// nevertheless, with a connection free, counts from when it is sent.
	Urgent bool
	// Pids are the server's processes, whose CPU time is measured.
	Pids []int
}

func (c *Config) check() error {
	switch {
	case c.Connections < 1:
		return fmt.Errorf("%d connections: want 1 or more", c.Connections)
	case c.Window <= 0 || c.Warmup < 0:
		return fmt.Errorf("window %v, warm-up %v: want a positive window", c.Window, c.Warmup)
	case c.Rate < 0:
		return fmt.Errorf("rate %v: want 0 or more", c.Rate)
	}
	return c.Question.check()
}

func (p Proto) read(buf []byte) (reply, error) {
	if p == RESP {
		return readRESP(buf)
	}
	return readHTTP(buf)
}

// good returns an error unless r is a reply as announced.
func (q *Question) good(r reply) error {
	switch {
	case r.status != q.Status:
		return fmt.Errorf("status %d, want %d: %.80s", r.status, q.Status, r.body)
	case q.Length != 0 && r.length != q.Length:
		return fmt.Errorf("a body of %d bytes, want %d", r.length, q.Length)
	case r.length == 0 && q.Status != 304 && q.Status != 204:
		return fmt.Errorf("an empty body")
	}
	return nil
}

const onceTimeout = 10 * time.Second // of one request on a connection of its own

// Once sends one request over a connection of its own and returns the reply as
// it came over the wire. It works on every system.
func Once(t Target, request []byte) ([]byte, error) {
	conn, err := net.DialTimeout(t.Network, t.Addr, onceTimeout)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(onceTimeout)) // fails on a closed connection only, and then so does Write
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	buf, n := make([]byte, 64<<10), 0
	for {
		r, err := t.Proto.read(buf[:n])
		if err == nil {
			return buf[:r.size], nil
		}
		if err != errShort {
			return nil, err
		}
		if n == len(buf) {
			buf = append(buf, make([]byte, len(buf))...)
		}
		got, err := conn.Read(buf[n:])
		if err != nil {
			return nil, fmt.Errorf("after %d bytes of the reply: %w", n, err)
		}
		n += got
	}
}
