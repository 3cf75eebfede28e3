package faults

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"rankcache/internal/lab/servers"
)

// Proxy passes TCP connections on to a server, and fails in the ways of a
// network. All methods may be called concurrently.
type Proxy struct {
	addr string

	mu       sync.Mutex
	upstream string
	listener net.Listener // nil while connections are refused
	conns    map[net.Conn]struct{}
	weather  weather
	changed  chan struct{} // closed when weather changes
	all      sync.WaitGroup
}

// weather is what happens to bytes on their way.
type weather struct {
	delay   time.Duration // of every chunk
	perSec  int           // bytes; 0: no limit
	stalled bool          // nothing moves, connections stay open
}

// NewProxy listens on a free loopback port and passes connections to upstream. The
// port is not the kernel's choice, which an outgoing connection could get while the
// proxy is cut.
func NewProxy(upstream string) (*Proxy, error) {
	p := &Proxy{upstream: upstream, conns: make(map[net.Conn]struct{}), changed: make(chan struct{})}
	addr, err := servers.FreeAddr()
	if err != nil {
		return nil, err
	}
	if err := p.listen(addr); err != nil {
		return nil, err
	}
	p.addr = p.listener.Addr().String()
	return p, nil
}

// Addr returns where it listens. It stays the same over Cut and Restore.
func (p *Proxy) Addr() string { return p.addr }

// Cut ends all connections and refuses new ones until Restore.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	p.hangUp()
}

// Restore makes an end of every fault.
func (p *Proxy) Restore() error {
	p.set(weather{})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		return nil
	}
	return p.listen(p.addr)
}

// Stall stops all bytes; connections stay open and new ones are accepted.
func (p *Proxy) Stall() { p.set(weather{stalled: true}) }

// Delay holds every chunk back for d, in both directions.
func (p *Proxy) Delay(d time.Duration) { p.set(weather{delay: d}) }

// Throttle lets pass so many bytes per second and direction of a connection.
func (p *Proxy) Throttle(perSec int) { p.set(weather{perSec: perSec}) }

// Redirect ends all connections and passes new ones to another server.
func (p *Proxy) Redirect(upstream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = upstream
	p.hangUp()
}

// Close ends everything and waits for it.
func (p *Proxy) Close() {
	p.set(weather{})
	p.Cut()
	p.all.Wait()
}

func (p *Proxy) set(w weather) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather = w
	close(p.changed)
	p.changed = make(chan struct{})
}

// hangUp is called with the lock held.
func (p *Proxy) hangUp() {
	for c := range p.conns {
		c.Close()
	}
}

// listen is called with the lock held, or before p is shared.
func (p *Proxy) listen(addr string) (err error) {
	if p.listener, err = net.Listen("tcp", addr); err == nil {
		ln := p.listener
		p.all.Go(func() { p.accept(ln) })
	}
	return err
}

func (p *Proxy) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			p.all.Go(func() { p.serve(ln, conn) })
		}
	}
}

// serve joins a connection with one of its own to the server.
func (p *Proxy) serve(ln net.Listener, client net.Conn) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", p.target(), time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.admit(ln, client, server) {
		return
	}
	ctx, hungUp := context.WithCancel(context.Background())
	defer hungUp()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			p.carry(ctx, way[1], way[0])
			hungUp()
			client.Close()
			server.Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, client)
	delete(p.conns, server)
}

func (p *Proxy) target() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upstream
}

// admit notes both ends, unless the proxy was cut while they were joined.
func (p *Proxy) admit(ln net.Listener, ends ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != ln {
		return false
	}
	for _, c := range ends {
		p.conns[c] = struct{}{}
	}
	return true
}

// carry copies one direction, as the weather lets it.
func (p *Proxy) carry(ctx context.Context, to io.Writer, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !p.hold(ctx, n) {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold waits as long as n bytes have to; false when the connection has ended.
func (p *Proxy) hold(ctx context.Context, n int) bool {
	for {
		p.mu.Lock()
		w, changed := p.weather, p.changed
		p.mu.Unlock()
		wait := w.delay
		if w.perSec > 0 {
			wait += time.Duration(n) * time.Second / time.Duration(w.perSec)
		}
		if wait == 0 && !w.stalled {
			return true
		}
		var over <-chan time.Time
		if !w.stalled {
			over = time.After(wait)
		}
		select {
		case <-over:
			return true
		case <-changed: // look again
		case <-ctx.Done():
			return false
		}
	}
}
