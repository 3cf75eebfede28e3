package load

import (
	"fmt"
	"net"
	"time"
)

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
