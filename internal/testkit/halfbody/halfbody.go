// Package halfbody sends requests of whose body the first byte comes with the head, and the
// others, which are a request themselves, behind the answer.
package halfbody

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// rest is the body but for its first byte: 53 bytes.
const rest = "GET /sneaked HTTP/1.1\r\nHost: localhost\r\nX-Pad: 12\r\n\r\n"

// patience is how long a server may take before a test fails.
const patience = 20 * time.Second

// Request is a request without its body.
type Request struct {
	Method, Path, ContentType, ContentEncoding string
}

// Framings are the ways to tell over HTTP/1.1 where the body of 54 bytes ends, each with the first
// byte.
var Framings = map[string]string{
	"length":  "Content-Length: 54\r\n\r\nx",
	"expect":  "Content-Length: 54\r\nExpect: 100-continue\r\n\r\nx",
	"chunked": "Transfer-Encoding: chunked\r\n\r\n36\r\nx",
}

// HTTP1 fails the test unless the server at the address closes the connection with its answer to
// the request, and takes the rest of the body for no other request.
func HTTP1(t testing.TB, network, addr string, r Request, framing string) {
	t.Helper()
	conn := dial(t, network, addr)
	defer conn.Close()
	head := r.Method + " " + r.Path + " HTTP/1.1\r\nHost: localhost\r\n"
	for _, field := range r.fields() {
		head += field[0] + ": " + field[1] + "\r\n"
	}
	_, err := io.WriteString(conn, head+Framings[framing])
	check(t, err)
	from := bufio.NewReader(conn)
	if !finalAnswer(t, from).Close {
		t.Error("the answer has no Connection: close")
	}
	_, _ = io.WriteString(conn, rest) // the connection may be closed
	if more, err := io.ReadAll(from); len(more) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("behind the answer came %.60q, %v", more, err)
	}
}

func dial(t testing.TB, network, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial(network, addr)
	check(t, err)
	check(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn
}

func (r *Request) fields() (fields [][2]string) {
	if r.ContentType != "" {
		fields = append(fields, [2]string{"content-type", r.ContentType})
	}
	if r.ContentEncoding != "" {
		fields = append(fields, [2]string{"content-encoding", r.ContentEncoding})
	}
	return fields
}

// finalAnswer reads an answer to its end, and those before it that are provisional.
func finalAnswer(t testing.TB, from *bufio.Reader) *http.Response {
	t.Helper()
	for {
		res, err := http.ReadResponse(from, nil)
		check(t, err)
		_, err = io.Copy(io.Discard, res.Body)
		check(t, err)
		if res.StatusCode != http.StatusContinue {
			return res
		}
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
