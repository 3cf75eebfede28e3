package faults

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"rankcache/internal/testkit"
)

// edgeFaults are what strangers and broken clients do to the listeners.
func edgeFaults() []fault {
	return []fault{{
		name: "10,000 idle and 500 slow connections", note: "on the data port",
		inject: func(w *env) { w.crowd(10_000, 500) },
		heal:   func(w *env) { w.disperse() },
	}, {
		name: "smuggled requests, giant URLs and headers, random bytes", note: "on all three ports",
		inject: func(w *env) { w.attack() },
	}}
}

// crowd opens connections that send nothing, and others that send a request byte
// by byte, and keeps them open.
func (w *env) crowd(idle, slow int) {
	w.Helper()
	addr := w.sidecar().Addr("data")
	for range idle {
		w.crowded = append(w.crowded, w.dial(addr))
	}
	for range slow {
		conn := w.dial(addr)
		w.crowded = append(w.crowded, conn)
		go trickle(conn)
	}
	w.Cleanup(w.disperse)
}

// trickle sends a request as slowly as it may, until the connection ends.
func trickle(conn net.Conn) {
	for _, c := range []byte("GET /v1/boards/1_2_3/top HTTP/1.1\r\nHost: localhost\r\nX-Filler: " + strings.Repeat("x", 10_000)) {
		if _, err := conn.Write([]byte{c}); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (w *env) dial(addr string) net.Conn {
	w.Helper()
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		w.Fatal(err)
	}
	return conn
}

// disperse ends the crowd.
func (w *env) disperse() {
	for _, conn := range w.crowded {
		conn.Close()
	}
	w.crowded = nil
}

// secret is a path that smuggled requests ask for: nothing but a server that was
// fooled answers it.
const secret = "/v1/boards/smuggled/top"

const bothLengths = "length and chunked"

// attack sends what no client should to all three ports and checks that nothing
// behind the request is answered, and that none is answered with 200 or 5xx.
func (w *env) attack() {
	w.Helper()
	hidden := "GET " + secret + " HTTP/1.1\r\nHost: localhost\r\n\r\n"
	before := memoryOf(w.sidecar())
	var all sync.WaitGroup
	for _, listener := range []string{"data", "admin", "health"} {
		for name, bytes := range attacks(hidden) {
			if name == bothLengths && listener != "data" {
				continue // net/http takes the chunks, as RFC 9112 allows
			}
			all.Go(func() {
				if why := answersTo(w.sidecar().Addr(listener), bytes); why != "" {
					w.Errorf("%s port, %s: %s", listener, name, why)
				}
			})
		}
		w.randomBytes(listener)
	}
	all.Wait()
	if after := memoryOf(w.sidecar()); after > before+128<<20 {
		w.Errorf("the sidecar grew from %d to %d MiB", before>>20, after>>20)
	}
}

// attacks are requests that two servers could read differently, or that are too
// large.
func attacks(hidden string) map[string]string {
	head := "POST /v1/boards/1_2_3/members:batch HTTP/1.1\r\nHost: localhost\r\n"
	return map[string]string{
		"two lengths":        head + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd" + hidden,
		bothLengths:          head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"chunked twice":      head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden,
		"obscured chunked":   head + "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + hidden,
		"odd chunked":        head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
		"negative length":    head + "Content-Length: -1\r\n\r\n" + hidden,
		"length with a sign": head + "Content-Length: +0\r\n\r\n" + hidden,
		"folded header":      head + "Content-Length: 3\r\n\t7\r\n\r\nabc" + hidden,
		"no version":         "GET /v1/boards/1_2_3/top\r\n\r\n" + hidden,
		"version 3":          "GET /v1/boards/1_2_3/top HTTP/3.0\r\nHost: localhost\r\n\r\n" + hidden,
		"giant URL":          "GET /" + strings.Repeat("u", 1<<20) + " HTTP/1.1\r\nHost: localhost\r\n\r\n" + hidden,
		"giant header":       "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("h", 1<<20) + "\r\n\r\n" + hidden,
		"100,000 headers":    "GET /livez HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("a: b\r\n", 100_000) + "\r\n" + hidden,
		"giant body":         head + "Content-Length: 1000000000\r\n\r\n" + strings.Repeat("b", 1<<20),
		"giant chunk":        head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + hidden,
		"another Host":       "GET /v1/boards/1_2_3/top HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"a TLS hello":        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", 500),
		"an HTTP/2 preface":  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	}
}

var statusLine = regexp.MustCompile(`HTTP/1\.[01] (\d{3})`)

// answersTo sends bytes and returns what is wrong with what comes back: an answer to
// what was hidden in them, or a successful one.
func answersTo(addr, bytes string) string {
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	go io.WriteString(conn, bytes) // it may be cut off in the middle
	answer, _ := io.ReadAll(io.LimitReader(conn, 1<<20))
	codes := statusLine.FindAllSubmatch(answer, -1)
	if len(codes) > 1 {
		return fmt.Sprintf("%d answers: %.900q", len(codes), answer)
	}
	for _, c := range codes {
		switch code := string(c[1]); {
		case code[0] == '4', code == "501", code == "505": // not implemented, version not supported
		default:
			return fmt.Sprintf("answered %.200q", answer)
		}
	}
	return ""
}

// randomBytes sends noise on some connections.
func (w *env) randomBytes(listener string) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 50 {
		conn := w.dial(w.sidecar().Addr(listener))
		noise := make([]byte, 1+rng.IntN(4000))
		for i := range noise {
			noise[i] = byte(rng.Uint32())
		}
		conn.Write(noise) // it may be cut off in the middle
		conn.Close()
	}
}

// memoryOf returns the resident memory of a process in bytes, 0 where the system
// does not tell.
func memoryOf(c *testkit.Child) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.PID()))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1])
	return pages * os.Getpagesize()
}
