package httpserve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// Open are the connections of a listener of [Serve].
type Open = Conns[*conn]

// NewOpen returns those of a listener that has so many at most.
func NewOpen(most int) *Open { return NewConns[*conn](most) }

type cappedListener struct {
	net.Listener
	conns *Open
	began time.Time
}

func (l *cappedListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, listener: l}
	c.enter(ReadingHead)
	l.conns.Add(c)
	return c, nil
}

// conn knows how far it is with a request; to net/http half a head is as good as silence.
type conn struct {
	net.Conn
	listener *cappedListener
	place    atomic.Int64
}

// Place tells where c is in the order of giving way.
func (c *conn) Place() Place { return Place(c.place.Load()) }

func (c *conn) enter(s Stage) { c.place.Store(int64(PlaceOf(s, int64(time.Since(c.listener.began))))) }

// Read sees when the next request begins.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.Place().Stage() == Idle {
		c.enter(ReadingHead)
	}
	return n, err
}

func (c *conn) Close() error {
	c.listener.conns.Remove(c)
	return c.Conn.Close()
}

type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// followed tells the connection of a request that its head is complete, which is when net/http calls a handler, and
// when its body is. net/http drops a Content-Length beside chunks, so each chunked request ends its connection.
//
// next gets a copy of the request. In the request itself net/http must find the body that
// it put there: only of that one it knows whether it was read to its end, and closes the
// connection if it was not. Otherwise the rest of a body would be its next request.
//
// A client that was refused has so long to send the rest of its body.
func followed(next http.Handler, linger time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(connKey{}).(*conn)
		if len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		if r.ContentLength == 0 {
			c.enter(Answering)
			next.ServeHTTP(w, r)
			return
		}
		c.enter(ReadingBody)
		b := &body{ReadCloser: r.Body, conn: c}
		seen := *r
		seen.Body = b
		next.ServeHTTP(w, &seen)
		if b.err == nil {
			b.linger(w, linger)
		}
	})
}

// answered is called when net/http has sent an answer and waits for the next request.
func answered(c net.Conn, s http.ConnState) {
	if s == http.StateIdle {
		c.(*conn).enter(Idle)
	}
}

// body sees when the last of it has come.
type body struct {
	io.ReadCloser
	conn *conn
	err  error // of the last read
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.err = err; err == io.EOF {
		b.conn.enter(Answering)
	}
	return n, err
}

// ErrSlow tells a caller that the body of his request did not come within the listener's ReadTimeout.
var ErrSlow = errors.New("the request came in too slowly")

// SlowBodies has next read err of a body that does not come in time, in place of a time-out of the socket.
func SlowBodies(err error, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := *r
		seen.Body = slowBody{r.Body, err}
		next.ServeHTTP(w, &seen)
	})
}

type slowBody struct {
	io.ReadCloser
	slow error
}

func (b slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = b.slow
	}
	return n, err
}

// A client that was refused may send so much and for so long before the connection is closed.
const (
	maxUnread  = 8 << 20         // bytes
	lingerTime = 2 * time.Second // at most as long as a request
)

// linger sends the answer and reads what the client still sends: with bytes unread he might lose the answer.
func (b *body) linger(w http.ResponseWriter, limit time.Duration) {
	control := http.NewResponseController(w)
	if control.Flush() == nil && control.SetReadDeadline(time.Now().Add(limit)) == nil {
		_, _ = io.CopyN(io.Discard, b.ReadCloser, maxUnread) // how it ends does not matter
	}
}
