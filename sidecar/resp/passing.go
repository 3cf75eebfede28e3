package resp

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"time"

	"rankcache/internal/httpserve"
)

type run struct {
	from, to int // in session.in
	commands int
	blocking bool
	pinned   bool // to its upstream, which has a transaction
	composed composed
}

// transaction is what a connection has begun by MULTI or WATCH.
type transaction struct {
	multi, watching bool
	refused         bool // a command of it was
}

// isPinned reports whether commands must go to the upstream that has it.
func (t *transaction) isPinned() bool { return t.multi || t.watching }

// passed takes note of a command with so many arguments.
func (t *transaction) passed(v verb, args int) {
	switch {
	case v == multi && args == 0:
		t.multi = true
	case v == watch && args > 0 && !t.multi:
		t.watching = true
	case (v == exec || v == discard) && args == 0 && t.multi:
		*t = transaction{}
	case v == unwatch && args == 0 && !t.multi:
		t.watching = false
	}
}

func (c *session) pass(v verb, cmd *command, n int) error {
	if c.isOwn() {
		if reply := c.server.refusesSplit(v, cmd.args); reply != "" {
			c.refused = c.multi
			return c.respond(v, sourceRefused, reply)
		}
	}
	f := c.server.facts.Load().flagsOf(cmd.args)
	if !f.readonly && (v < zRevRange || v > zCount) { // reads are known before anything is learned
		if v == script && !c.multi && c.server.guard.touches(cmd.args) {
			if taken, err := c.passReading(v, cmd); taken || err != nil {
				return err
			}
		}
		if logged, err := c.passLogged(cmd, n); logged || err != nil {
			return err
		}
		reply, unsure := c.server.guard.refuses(cmd.args)
		if reply != "" {
			c.refused = c.multi
			return c.respond(v, sourceRefused, reply)
		}
		c.unsure = append(c.unsure, unsure...)
		c.writes.begun(v, cmd.args, c.server.boardOf)
	}
	c.server.counts.add(c.id, v, sourcePassed)
	c.timing.pass(f.blocking)
	if c.run.composed.raw != nil {
		if err := c.makeRoom(len(cmd.raw)); err != nil {
			return err
		}
	}
	if c.run.composed.raw != nil {
		c.run.composed.raw = append(c.run.composed.raw, cmd.raw...)
	}
	c.extend(n)
	c.run.blocking = c.run.blocking || f.blocking
	return nil
}

// extend takes the next command, of length n, into the run.
func (c *session) extend(n int) {
	if c.run.commands == 0 {
		c.run.from, c.run.pinned = c.from, c.isPinned()
	}
	c.run.to = c.from + n
	c.run.commands++
}

// unread begin the replies of a Redis to a script that does not only read, or to a command it does not have.
var unread = [][]byte{[]byte("Write commands are not allowed from read-only scripts"), []byte("Can not execute a script with write flag"),
	[]byte("ERR unknown command"), []byte("NOPERM")}

// passReading passes a script on as one that may only read, and reports whether Redis ran it so.
func (c *session) passReading(v verb, cmd *command) (taken bool, err error) {
	if size := int64(len(cmd.raw)); size > keepRoom {
		if !c.server.held.take(size) {
			return false, refuseHeld(&c.Conn)
		}
		defer c.server.held.drop(size)
	}
	raw := appendBulk(appendArray(make([]byte, 0, len(cmd.raw)+16), len(cmd.args)), string(cmd.args[0])+"_RO")
	for _, a := range cmd.args[1:] {
		raw = appendBulk(raw, a)
	}
	c.timing.pass(false)
	reply, err := c.exchange(raw)
	if err != nil || reply[0] == '-' && slices.ContainsFunc(unread, func(why []byte) bool { return bytes.Contains(reply, why) }) {
		return false, err
	}
	c.server.counts.add(c.id, v, sourcePassed)
	c.out = append(c.out, reply...)
	return true, nil
}

// passTransaction passes on a command that begins or ends a transaction.
func (c *session) passTransaction(v verb, cmd *command, n int) error {
	if v == exec && c.refused {
		return c.abort()
	}
	err := c.pass(v, cmd, n)
	if err == nil {
		c.passed(v, len(cmd.args)-1)
	}
	return err
}

// abort ends a transaction of which a command was refused here, as Redis does after an error.
func (c *session) abort() error {
	reply, err := c.exchange(appendCommand(nil, "DISCARD"))
	if err != nil {
		return err
	}
	c.transaction = transaction{}
	if reply[0] == '+' {
		reply = []byte("-EXECABORT Transaction discarded because of previous errors.\r\n")
	}
	c.out = append(c.out, reply...)
	return nil
}

// exchange sends one command and returns the reply, which the client does not get.
func (c *session) exchange(raw []byte) ([]byte, error) {
	if err := c.finishRun(); err != nil {
		return nil, err
	}
	if err := c.flush(); err != nil {
		return nil, err
	}
	if err := c.open(c.isPinned()); err != nil {
		_ = c.away(0, err)
		return []byte(awayReply(err)), nil
	}
	if err := c.up.send(raw, 1, c.server.cfg.WriteTimeout); err != nil {
		return nil, err
	}
	if err := c.receiveAll(false, math.MaxInt); err != nil {
		return nil, err
	}
	reply := bytes.Clone(c.out)
	c.out = c.out[:0]
	return reply, nil
}

func (c *session) finishRun() error {
	r, asked := c.run, c.agree.asked
	if r.commands == 0 {
		return nil
	}
	c.run, c.agree.asked = run{}, asked[:0]
	if err := c.open(r.pinned); err != nil {
		return c.away(r.commands, err)
	}
	raw := c.in[r.from:r.to]
	if r.composed.raw != nil {
		raw = r.composed.bytes(r.commands > 1)
	}
	if err := c.up.send(raw, r.commands, c.server.cfg.WriteTimeout); err != nil {
		return err
	}
	c.up.replies.calls = r.composed.calls
	most, at := 0, len(c.out)
	if len(asked) > 0 && !r.blocking {
		most = flushAt
	}
	err := c.receiveAll(r.blocking, most)
	if errors.Is(err, errNoScript) && r.commands == 1 {
		if err = c.up.send(r.composed.bytes(true), 1, c.server.cfg.WriteTimeout); err == nil {
			err = c.receiveAll(false, most)
		}
	}
	if !c.multi { // else what was written is so at EXEC
		c.writes.ended()
		if len(c.writes.named) > 0 {
			c.server.named.written(c.writes.named)
		}
		for _, board := range c.writes.boards {
			c.server.reader.Written(board)
		}
		c.writes.boards, c.writes.named = c.writes.boards[:0], c.writes.named[:0]
		c.endUnsure()
	}
	if ends := c.up.replies.ends; err == nil && len(asked) > 0 && len(c.out) == at+ends[r.commands-1] {
		c.settle(asked, at, ends)
	}
	if cap(c.up.replies.ends) > keepArgs {
		c.up.replies.ends = nil
	}
	return err
}

// away answers commands that can't be passed on. A transaction can't have begun.
func (c *session) away(commands int, err error) error {
	c.transaction = transaction{}
	c.writes.dropped()
	for range commands {
		c.out = append(c.out, awayReply(err)...)
	}
	return nil
}

// receiveAll passes replies back until none is awaited, or so many bytes of a Redis that answers in time.
func (c *session) receiveAll(watched bool, most int) error {
	for c.up.replies.want > 0 {
		if len(c.out) > most {
			if err := c.flush(); err != nil {
				return err
			}
		}
		receive := c.up.receive
		if watched {
			receive = c.watch
		}
		p, waited, err := receive()
		if err != nil {
			return err
		}
		if waited && most <= flushAt {
			most = 0
		}
		watched = watched || waited
		c.out = append(c.out, p...)
	}
	c.up.used = time.Now()
	return nil
}

// watch waits for the upstream's bytes, and ends that when the client goes away. What he sends meanwhile is kept.
func (c *session) watch() (p []byte, waited bool, err error) {
	if err := c.EndAnswer(c.begun); err != nil {
		return nil, false, err
	}
	c.Enter(httpserve.Answering)
	c.waits.Store(c.up)
	defer c.waits.Store(nil)
	client, up := c.Conn.Conn, c.up
	ended := make(chan []byte)
	go func() {
		p, err := readAhead(client)
		if err != nil {
			up.Close()
		}
		ended <- p
	}()
	p, err = up.receiveAnytime()
	_ = client.SetReadDeadline(time.Unix(1, 0)) // ends readAhead; an error shows at the next read
	c.in = append(c.in, <-ended...)
	_ = client.SetReadDeadline(time.Time{})
	c.begun = c.BeginAnswer()
	return p, true, err
}

// readAhead reads until its deadline or until it has enough. An error is the end of the connection.
func readAhead(client net.Conn) (p []byte, err error) {
	room := make([]byte, firstRoom)
	for len(p) < 4*keepRoom {
		n, err := client.Read(room)
		p = append(p, room[:n]...)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return p, nil
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// open makes sure of a connection upstream. An idle one that was closed is replaced, but in a transaction.
func (c *session) open(pinned bool) error {
	if c.up != nil && (pinned || c.up.isAlive()) {
		return nil
	}
	c.closeUpstream()
	nc, err := c.server.upstreams.dial(c.server.lived, c.greeting)
	if err != nil {
		return err
	}
	c.server.upstreams.add(nc)
	c.up = &upstream{Conn: nc, buf: make([]byte, 16<<10), used: time.Now()}
	return nil
}

func (c *session) closeUpstream() {
	if c.up != nil {
		c.up.Close()
		c.server.upstreams.remove(c.up.Conn)
		c.up = nil
	}
}

// relay passes on all that comes from now on, both ways, and counts nothing.
func (c *session) relay() error {
	if err := c.finishRun(); err != nil {
		return err
	}
	if err := c.open(c.isPinned()); err != nil {
		_ = c.away(1, err)
		return errDone
	}
	if err := c.flush(); err != nil {
		return err
	}
	c.server.counts.add(c.id, relayed, sourcePassed)
	if err := c.EndAnswer(c.begun); err != nil {
		return err
	}
	up := c.up.Conn
	c.waits.Store(c.up)
	_ = up.SetDeadline(time.Time{})
	_ = c.SetReadDeadline(time.Time{})
	if _, err := up.Write(c.in[c.from:]); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(up, c.Conn.Conn) // either end ends both
		up.Close()
	}()
	_, _ = io.Copy(&c.Conn, up)
	return errDone
}

// Close ends the connection as [conn.Conn.Close] does, also one that waits for the upstream without end.
func (c *session) Close() error {
	err := c.Conn.Close()
	if up := c.waits.Load(); up != nil {
		hangUp(up.Conn)
	}
	return err
}
