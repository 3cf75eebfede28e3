package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"rankcache/sidecar/encode"
)

const (
	batchLine = "POST /v1/boards/local/members:batch HTTP/1.1\r\nHost: localhost\r\n"
	batchBody = `{"members":["m000001"]}`
	chunked   = "Transfer-Encoding: chunked\r\n"
)

// TestFraming sends requests whose end two servers could see in different places. Each is
// refused at once, the connection ends, and nothing behind it is answered.
func TestFraming(t *testing.T) {
	s := start(t, newEnv(), Config{ReadTimeout: time.Hour})
	const get = "GET /v1/boards/local/top?limit=1 HTTP/1.1\r\nHost: localhost\r\n"
	const smuggled = "GET /v1/boards/shut/top HTTP/1.1\r\nHost: localhost\r\n\r\n"
	const body = "4\r\nabcd\r\n0\r\n\r\n"
	for _, c := range []struct {
		name, request string
		status        int
		code          encode.Code
	}{
		{"length and chunked", batchLine + "Content-Length: 9\r\n" + chunked + "\r\n" + body, 400, encode.CodeBadRequest},
		{"length and chunked, no body yet", batchLine + "Content-Length: 9\r\n" + chunked + "\r\n", 400, encode.CodeBadRequest},
		{"length and identity", batchLine + "Content-Length: 4\r\nTransfer-Encoding: identity\r\n\r\nabcd", 400, encode.CodeBadRequest},
		{"identity", batchLine + "Transfer-Encoding: identity\r\n\r\n", 400, encode.CodeBadRequest},
		{"no coding", batchLine + "Transfer-Encoding:\r\n\r\n", 400, encode.CodeBadRequest},
		{"not chunked", batchLine + "Transfer-Encoding: gzip\r\n\r\n", 400, encode.CodeBadRequest},
		{"chunked is not the last", batchLine + "Transfer-Encoding: chunked, gzip\r\n\r\n" + body, 400, encode.CodeBadRequest},
		{"chunked twice", batchLine + "Transfer-Encoding: chunked, chunked\r\n\r\n" + body, 400, encode.CodeBadRequest},
		{"unknown coding", batchLine + "Transfer-Encoding: gzip, chunked\r\n\r\n" + body, 501, encode.CodeNotImplemented},
		{"unknown coding in a line of its own", batchLine + "Transfer-Encoding: gzip\r\n" + chunked + "\r\n" + body, 501, encode.CodeNotImplemented},
		{"chunked in HTTP/1.0", strings.Replace(batchLine, "HTTP/1.1", "HTTP/1.0", 1) + chunked + "\r\n" + body, 400, encode.CodeBadRequest},
		{"space in a name", get + "Foo Bar: x\r\n\r\n", 400, encode.CodeBadRequest},
		{"space behind a name", get + "Foo : x\r\n\r\n", 400, encode.CodeBadRequest},
		{"no name", get + ": x\r\n\r\n", 400, encode.CodeBadRequest},
		{"folded line", get + "Foo: x\r\n y\r\n\r\n", 400, encode.CodeBadRequest},
		{"folded by a tab", get + "Foo: x\r\n\ty\r\n\r\n", 400, encode.CodeBadRequest},
		{"lone line feed behind the request line", "GET / HTTP/1.1\nHost: localhost\r\n\r\n", 400, encode.CodeBadRequest},
		{"lone line feed behind a field", get + "Foo: x\n\r\n", 400, encode.CodeBadRequest},
		{"lone line feeds alone", "GET / HTTP/1.1\nHost: localhost\n\n", 400, encode.CodeBadRequest},
		{"lone line feed first", "\n" + get + "\r\n", 400, encode.CodeBadRequest},
		{"no chunk size", batchLine + chunked + "\r\n\r\n", 400, encode.CodeBadRequest},
		{"signed chunk size", batchLine + chunked + "\r\n+4\r\nabcd\r\n0\r\n\r\n", 400, encode.CodeBadRequest},
		{"hex sign before a chunk size", batchLine + chunked + "\r\n0x4\r\nabcd\r\n0\r\n\r\n", 400, encode.CodeBadRequest},
		{"space behind a chunk size", batchLine + chunked + "\r\n4 \r\nabcd\r\n0\r\n\r\n", 400, encode.CodeBadRequest},
		{"endless chunk size", batchLine + chunked + "\r\n" + strings.Repeat("0", 40) + "4\r\nabcd\r\n0\r\n\r\n", 400, encode.CodeBadRequest},
		{"control character in an extension", batchLine + chunked + "\r\n4;a=\x01\r\nabcd\r\n0\r\n\r\n", 400, encode.CodeBadRequest},
		{"lone line feed behind a chunk size", batchLine + chunked + "\r\n4\nabcd\r\n0\r\n\r\n", 400, encode.CodeBadRequest},
		{"no line end behind a chunk", batchLine + chunked + "\r\n4\r\nabcde\r\n0\r\n\r\n", 400, encode.CodeBadRequest},
		{"space in a trailer's name", batchLine + chunked + "\r\n0\r\nFoo Bar: x\r\n\r\n", 400, encode.CodeBadRequest},
		{"space behind a trailer's name", batchLine + chunked + "\r\n0\r\nFoo : x\r\n\r\n", 400, encode.CodeBadRequest},
		{"folded trailer", batchLine + chunked + "\r\n0\r\nFoo: x\r\n y\r\n\r\n", 400, encode.CodeBadRequest},
		{"lone line feed behind a trailer", batchLine + chunked + "\r\n0\r\nFoo: x\nBar: y\r\n\r\n", 400, encode.CodeBadRequest},
		{"length in a trailer", batchLine + chunked + "\r\n0\r\nContent-Length: 4\r\n\r\n", 400, encode.CodeBadRequest},
		{"CONNECT", "CONNECT example.com:80 HTTP/1.1\r\nHost: example.com:80\r\n\r\n", 501, encode.CodeNotImplemented},
	} {
		t.Run(c.name, func(t *testing.T) {
			stream := s.raw(t, "tcp", c.request+smuggled)
			res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(stream)), nil)
			if err != nil {
				t.Fatalf("%v in %q", err, stream)
			}
			body, _ := io.ReadAll(res.Body)
			checkProblem(t, answer{res.StatusCode, res.Header, string(body)}, c.status, c.code, "")
			if codes := statuses(t, stream); len(codes) != 1 || !res.Close {
				t.Errorf("%d answers, close %v: %q", len(codes), res.Close, stream)
			}
		})
	}
}

// TestWellFramed: what is unusual but has one meaning is answered, and so is the request
// behind it, however the bytes are cut into pieces.
func TestWellFramed(t *testing.T) {
	s := start(t, newEnv(), Config{})
	const last = "GET /v1/boards/shut/top HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	sized := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(batchBody), batchBody)
	piece := fmt.Sprintf("%x;a=b\r\n%s\r\n", len(batchBody), batchBody)
	for name, request := range map[string]string{
		"length":                 batchLine + sized,
		"chunks":                 batchLine + "TRANSFER-ENCODING: Chunked\r\n\r\n" + piece + "000\r\n\r\n",
		"trailers":               batchLine + chunked + "\r\n" + piece + "0\r\nChecksum: x\r\nOther:\r\n\r\n",
		"blank lines in front":   "\r\n\r\n" + batchLine + sized,
		"no space behind colons": batchLine + "X:y\r\n" + sized,
		"one byte a chunk":       batchLine + chunked + "\r\n" + oneByOne(batchBody) + "0\r\n\r\n",
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			t.Run(fmt.Sprintf("%s by %d", name, size), func(t *testing.T) {
				conn := opened(t, s, "")
				go func(rest string) {
					for len(rest) > 0 {
						n := min(size, len(rest))
						_, _ = io.WriteString(conn, rest[:n])
						rest = rest[n:]
					}
				}(request + last)
				stream, _ := io.ReadAll(conn)
				if codes := statuses(t, string(stream)); len(codes) != 2 || codes[0] != 200 || codes[1] != 403 {
					t.Errorf("%v: %s", codes, stream)
				}
			})
		}
	}
}

// oneByOne returns s in chunks of one byte.
func oneByOne(s string) (chunks string) {
	for i := range len(s) {
		chunks += "1\r\n" + s[i:i+1] + "\r\n"
	}
	return chunks
}

// TestAnswersDoNotWait: a complete request is answered although the next one, sent with it,
// has no end yet.
func TestAnswersDoNotWait(t *testing.T) {
	s := start(t, newEnv(), Config{ReadTimeout: time.Hour})
	post := fmt.Sprintf(batchLine+"Content-Length: %d\r\n\r\n%s", len(batchBody), batchBody)
	for name, requests := range map[string]string{
		"a head":                 request + halfHead,
		"a body":                 request + halfBody,
		"a chunk":                request + batchLine + chunked + "\r\n5\r\nab",
		"a body behind another":  post + halfBody,
		"a body behind a chunk":  batchLine + chunked + "\r\n" + oneByOne(batchBody) + "0\r\n\r\n" + halfBody,
		"a body behind expected": request + batchLine + "Expect: 100-continue\r\nContent-Length: 9\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) { answered(t, opened(t, s, requests)) })
	}
}

// TestExpect: a client that waits for a 100 gets it, in any case of letters; HTTP/1.0
// clients and requests that would be refused do not.
func TestExpect(t *testing.T) {
	s := start(t, newEnv(), Config{ReadTimeout: time.Hour})
	head := func(version, expect string, length int) string {
		return fmt.Sprintf("POST /v1/boards/local/members:batch %s\r\nHost: localhost\r\nExpect: %s\r\nContent-Length: %d\r\n%s",
			version, expect, length, closing)
	}
	for _, c := range []struct {
		name, head, first string
	}{
		{"small letters", head("HTTP/1.1", "100-continue", len(batchBody)), "HTTP/1.1 100 "},
		{"Java", head("HTTP/1.1", "100-Continue", len(batchBody)), "HTTP/1.1 100 "},
		{"capitals", head("HTTP/1.1", "100-CONTINUE", len(batchBody)), "HTTP/1.1 100 "},
		{"too large", head("HTTP/1.1", "100-continue", maxBody+1), "HTTP/1.1 413 "},
		{"too large, Java", head("HTTP/1.1", "100-Continue", maxBody+1), "HTTP/1.1 413 "},
		{"no body", head("HTTP/1.1", "100-continue", 0), "HTTP/1.1 400 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := opened(t, s, c.head)
			in := bufio.NewReader(conn)
			if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, c.first) {
				t.Fatalf("%q, %v; want %s", line, err, c.first)
			}
			if !strings.Contains(c.first, " 100 ") {
				return
			}
			_, _ = in.ReadString('\n')
			_, _ = io.WriteString(conn, batchBody)
			rest, _ := io.ReadAll(in)
			if codes := statuses(t, string(rest)); len(codes) != 1 || codes[0] != 200 {
				t.Errorf("%q", rest)
			}
		})
	}
	if stream := s.raw(t, "tcp", head("HTTP/1.0", "100-continue", len(batchBody))+batchBody); !strings.HasPrefix(stream, "HTTP/1.1 200 ") {
		t.Errorf("HTTP/1.0 got %q", stream)
	}
}

// TestConnectionOptions: they are a list without regard to case, over any number of lines.
func TestConnectionOptions(t *testing.T) {
	s := start(t, newEnv(), Config{})
	const get = "GET /v1/boards/tiny/top HTTP/1.1\r\nHost: localhost\r\n"
	for options, closes := range map[string]bool{
		"Connection: close\r\n": true, "Connection: Close\r\n": true, "connection: CLOSE\r\n": true,
		"Connection: foo, close\r\n": true, "Connection: close,foo\r\n": true, "Connection:\tclose\t\r\n": true,
		"Connection: close\r\nConnection: foo\r\n": true, "Connection: foo\r\nConnection: Close\r\n": true,
		"": false, "Connection: keep-alive\r\n": false, "Connection: closed\r\n": false, "X-Connection: close\r\n": false,
	} {
		for range 4 { // the request cache must not know better
			conn := s.dial(t, "tcp")
			for range 3 {
				got := conn.ask(get+options+"\r\n", 1)
				if announced := strings.Contains(got, "\r\nConnection: close\r\n"); announced != closes {
					t.Errorf("%q: close %v, want %v", options, announced, closes)
				}
				if closes {
					if _, err := conn.in.ReadByte(); err != io.EOF {
						t.Fatalf("%q: %v, want the end", options, err)
					}
					break
				}
			}
		}
	}
	// The same for a refused request.
	if got := s.dial(t, "tcp").ask("GET /nothing"+hostLine+"Connection: Close\r\n\r\n", 1); !strings.Contains(got, "\r\nConnection: close\r\n") {
		t.Errorf("%s", got)
	}
}

// TestOptions of the server as a whole.
func TestOptions(t *testing.T) {
	s := start(t, newEnv(), Config{})
	got := s.dial(t, "tcp").ask("OPTIONS *"+hostLine+"\r\n", 1)
	if !strings.HasPrefix(got, "HTTP/1.1 204 ") || !strings.Contains(got, "\r\nAllow: GET, HEAD, POST, OPTIONS\r\n") || strings.Contains(got, "Content-Length") {
		t.Errorf("%s", got)
	}
}
