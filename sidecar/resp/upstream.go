package resp

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// upstream is the connection to Redis of one client.
type upstream struct {
	net.Conn
	replies replies
	buf     []byte
	armed   time.Time // when the deadline of reads was set
	sending time.Time // the same of writes
	used    time.Time
}

// upstreams are the open connections to Redis of all clients.
type upstreams struct {
	cfg       *Config
	began     time.Time
	downUntil atomic.Int64 // since began; Redis could not be reached

	mu   sync.Mutex
	open map[net.Conn]struct{}
}

func (u *upstreams) add(c net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open[c] = struct{}{}
}

func (u *upstreams) remove(c net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.open, c)
}

func (u *upstreams) len() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.open)
}

// closeBut closes those that are not to the address.
func (u *upstreams) closeBut(addr string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c := range u.open {
		if c.RemoteAddr().String() != addr {
			hangUp(c)
		}
	}
}

// hangUp closes the connection without waiting, also where TLS would send an end.
func hangUp(c net.Conn) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	c.Close()
}

const idleUnchecked = 50 * time.Millisecond // how long an upstream is taken to be there without a look

// isAlive reports whether the connection is still open, and nothing has come: no reply is awaited.
func (u *upstream) isAlive() bool {
	if time.Since(u.used) < idleUnchecked {
		return true
	}
	secure, ok := u.Conn.(*tls.Conn)
	if !ok {
		pending, open := peek(u.Conn)
		return open && !pending
	}
	if pending, open := peek(secure.NetConn()); !open || !pending {
		return open
	}
	// The end of TLS, or a record without data, such as a ticket.
	u.armed = time.Time{}
	_ = u.SetReadDeadline(time.Now().Add(time.Millisecond))
	n, err := u.Read(u.buf[:1])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

// isOwn reports whether the user and password are the sidecar's.
func (c *Config) isOwn(user, password []byte) bool {
	ownUser, ownPassword := c.Credentials()
	if ownPassword == "" {
		return false
	}
	sameUser := string(user) == ownUser || isDefault(string(user)) && isDefault(ownUser)
	return sameUser && subtle.ConstantTimeCompare(password, []byte(ownPassword)) == 1
}

func isDefault(user string) bool { return user == "" || user == "default" }

const retryAfter = 100 * time.Millisecond // how long an upstream that could not be reached is not dialled again

// dial returns a connection to the upstream that has been greeted.
func (u *upstreams) dial(ctx context.Context, g greeting) (net.Conn, error) {
	if down := u.downUntil.Load(); down > int64(time.Since(u.began)) {
		return nil, errAway
	}
	ctx, cancel := context.WithTimeout(ctx, u.cfg.UpstreamTimeout)
	defer cancel()
	conn, err := u.cfg.Dial(ctx)
	if err == nil {
		if err = u.greet(conn, g); err == nil {
			return conn, nil
		}
		conn.Close()
	}
	if !errors.As(err, new(errRefused)) {
		u.downUntil.Store(int64(time.Since(u.began) + retryAfter))
	}
	return nil, err
}

func (u *upstreams) greet(conn net.Conn, g greeting) error {
	first, needed := g.commands(u.cfg.Credentials)
	if len(first) == 0 {
		return nil
	}
	got, err := askAll(conn, u.cfg.UpstreamTimeout, first)
	if err != nil {
		return err
	}
	for _, reply := range got[:needed] {
		if reply[0] == '-' {
			return errRefused(reply[1 : len(reply)-2])
		}
	}
	return nil
}

type errRefused string // an error that the upstream answered to what a connection begins with

func (e errRefused) Error() string { return "the upstream refused the connection: " + string(e) }

var errAway = errors.New("the upstream is away")

// awayReply is the error of a command that can't be passed on: Redis's, if it refused, else one to try again.
func awayReply(err error) string {
	var refused errRefused
	if errors.As(err, &refused) {
		return "-" + string(refused) + "\r\n"
	}
	return "-MASTERDOWN RANKCACHE Redis can't be reached\r\n"
}

const waitBefore = time.Second // how long a reply is awaited before the client is watched, too

// receive reads what the upstream sends. waited is whether nothing came for some time.
func (u *upstream) receive() (p []byte, waited bool, err error) {
	if now := time.Now(); now.Sub(u.armed) > waitBefore/4 { // so it is set rarely
		u.armed = now
		if err := u.SetReadDeadline(now.Add(waitBefore)); err != nil {
			return nil, false, err
		}
	}
	p, err = u.read()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, true, nil
	}
	return p, false, err
}

// receiveAnytime is receive without a limit.
func (u *upstream) receiveAnytime() ([]byte, error) {
	u.armed = time.Time{}
	if err := u.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return u.read()
}

// read reads once. What it returns is valid until the next call.
func (u *upstream) read() ([]byte, error) {
	n, err := u.Read(u.buf)
	if n == 0 {
		return nil, fmt.Errorf("the upstream ended: %w", err)
	}
	return u.buf[:n], u.replies.scan(u.buf[:n])
}

// send sends commands that get so many replies.
func (u *upstream) send(p []byte, n int, timeout time.Duration) error {
	u.replies.want, u.replies.seen, u.replies.ends, u.replies.calls = u.replies.want+n, 0, u.replies.ends[:0], nil
	if now := time.Now(); now.Sub(u.sending) > timeout/4 { // so it is set rarely
		u.sending = now
		if err := u.SetWriteDeadline(now.Add(timeout)); err != nil {
			return err
		}
	}
	_, err := u.Write(p)
	return err
}
