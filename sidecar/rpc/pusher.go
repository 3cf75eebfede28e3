package rpc

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"rankcache/internal/httpserve"
	"rankcache/sidecar/internal/apijson"
	"rankcache/sidecar/internal/conn"
	"rankcache/sidecar/internal/live"
)

// pusher sends the events of one watch to a connection that was taken over from net/http.
// Whoever notifies it writes them: it has no goroutine and no buffer of its own, as thousands
// of them make garbage collections long. Only what the connection does not take at once is
// written by a goroutine.
type pusher struct {
	timeout time.Duration
	watch   *watch
	conn    net.Conn
	raw     syscall.RawConn // of conn
	// signals is 0 while nobody uses the fields above and below. Who makes it 1 owns them until
	// it is 0 again; who finds it higher adds one, so that the owner looks once more.
	signals atomic.Int32

	last   bool // the last event is being written
	doTry  func(fd uintptr) bool
	trying struct { // what doTry writes, and with what result
		data []byte
		n    int
		err  error
	}
}

// push takes the connection of a request over and sends it the events of a watch, until one of
// them ends.
func (s eventStreams) push(ctx context.Context, control *http.ResponseController, a address, lastID string) *apijson.Problem {
	p := &pusher{timeout: s.cfg.WriteTimeout}
	p.doTry = p.try
	p.signals.Store(1)
	var problem *apijson.Problem
	if p.watch, problem = s.open(ctx, a, lastID, p.notify); problem != nil {
		return problem
	}
	var err error
	if p.conn, _, err = control.Hijack(); err != nil {
		p.watch.close()
		return &apijson.Problem{Code: apijson.CodeInternal}
	}
	if p.raw, err = httpserve.RawConn(p.conn); err != nil {
		p.end()
		return nil
	}
	p.writeAll([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\nDate: " +
		time.Now().UTC().Format(http.TimeFormat) + "\r\n\r\n"))
	return nil
}

// notify sends what there is to send, unless another goroutine is about it. It waits for nothing.
func (p *pusher) notify() {
	if p.signals.Add(1) == 1 {
		p.send()
	}
}

// send sends events until there is none. The caller owns p.
func (p *pusher) send() {
	for {
		signals := p.signals.Load()
		for ev, ok := p.watch.poll(); ok; ev, ok = p.watch.poll() {
			if !p.sendOne(&ev) {
				return
			}
		}
		if p.signals.CompareAndSwap(signals, 0) {
			return
		}
	}
}

// sendOne returns false if p has ended or another goroutine owns it.
func (p *pusher) sendOne(ev *live.Event) bool {
	switch {
	case ev.Kind == live.Over:
		go p.goOver()
		return false
	case ev.Kind == live.Age && p.gone():
		p.end()
		return false
	}
	p.last = ev.Kind == live.End
	rest, err := p.write(ev.SSE())
	switch {
	case len(rest) > 0 && err == nil:
		go p.writeAll(rest)
		return false
	case err != nil, p.last:
		p.end()
		return false
	}
	return true
}

// goOver goes on with the stream of the class's next board.
func (p *pusher) goOver() {
	if end, ended := p.watch.goOver(context.Background()); ended {
		p.sendOne(&end)
		return
	}
	p.send()
}

// write writes what the connection takes at once, and returns the rest.
func (p *pusher) write(data []byte) (rest []byte, err error) {
	p.trying.data, p.trying.n, p.trying.err = data, 0, nil
	if err := p.raw.Write(p.doTry); err != nil {
		return nil, err
	}
	return data[p.trying.n:], p.trying.err
}

// try is write's, for the connection's descriptor. It reports that no other try is wanted.
func (p *pusher) try(fd uintptr) bool {
	for {
		n, err := conn.TryWrite(fd, p.trying.data)
		switch err {
		case nil:
			p.trying.n = n
		case syscall.EINTR:
			continue
		case syscall.EAGAIN: // it is full
		default:
			p.trying.err = err
		}
		return true
	}
}

// writeAll waits until the connection has taken the data, for as long as a write may last, and
// goes on with the next event.
func (p *pusher) writeAll(data []byte) {
	err := p.conn.SetWriteDeadline(time.Now().Add(p.timeout))
	if err == nil {
		_, err = p.conn.Write(data)
	}
	if err == nil {
		err = p.conn.SetWriteDeadline(time.Time{})
	}
	if err != nil || p.last {
		p.end()
		return
	}
	p.send()
}

// gone reports whether the client has closed its end. What it sends is dropped.
func (p *pusher) gone() (gone bool) {
	err := p.raw.Read(func(fd uintptr) bool {
		var dropped [64]byte
		n, err := syscall.Read(int(fd), dropped[:])
		gone = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
		return true
	})
	return gone || err != nil
}

// end closes watch and connection. p is owned for ever, so that nothing is sent any more.
func (p *pusher) end() {
	p.watch.close()
	_ = p.conn.Close() // the client has all that it will get
}
