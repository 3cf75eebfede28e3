package load

import "fmt"

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
