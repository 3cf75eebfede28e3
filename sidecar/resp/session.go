package resp

import (
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/sidecar"
	"rankcache/sidecar/internal/conn"
)

// session is one client's connection, served by one goroutine: it answers what it can, passes the rest on a run at a
// time, and waits for the run's replies. So replies are in order without a lock.
type session struct {
	conn.Conn
	server *Server
	id     uint64
	begun  httpserve.Place
	timing stopwatch

	buffer
	parser parser
	out    []byte
	lookup lookup

	greeting
	transaction
	writes writes
	unsure []rankcache.BoardID // whose sums are to be unknown once the replies have come
	run    run
	agree  agreement
	up     *upstream                // nil: nothing was passed on yet
	waits  atomic.Pointer[upstream] // the upstream while no time bounds the waiting for it
}

// How much of what is sent behind a malformed frame is read, and for how long at most.
const maxUnread, lingerTime = 8 << 20, 2 * time.Second

const flushAt = 64 << 10 // how many bytes of replies are sent while more are made

var errDone = errors.New("done") // ends a session in which nothing is left to do

// OnBytes, OnMore and OnNext implement [conn.Hooks]; all bytes are for Read.
func (c *session) OnBytes(p []byte) (int, bool, error) { return len(p), false, nil }

// OnMore is as OnBytes.
func (c *session) OnMore(p []byte) (int, error) { return len(p), nil }

func (c *session) OnNext() {}

// serve answers until the client or an error ends the connection.
func (c *session) serve() error {
	defer c.close()
	c.AnswerSent() // so that a silent client may wait as long as an idle one
	c.Enter(httpserve.ReadingHead)
	for {
		if err := c.read(&c.Conn); err != nil {
			return err
		}
		c.begun = c.BeginAnswer()
		c.timing.begin()
		c.out = c.server.takeBuffer()
		err := c.answerAll()
		if errors.Is(err, errDone) || errors.As(err, new(protocolError)) {
			_ = c.flush()
			if !errors.Is(err, errDone) { // what was sent behind the mistake is not read, and must not take the error away
				c.Linger(maxUnread, lingerTime)
			}
			return err
		}
		if err == nil {
			err = c.flush()
		}
		if err == nil {
			c.timing.end(c.server.durations)
			err = c.EndAnswer(c.begun)
		}
		if err != nil {
			return err
		}
		c.server.giveBuffer(c.out)
		c.lookup.as[0].Fail(nil) // it would hold the board's state while the connection is idle
		c.agree.rest()
		c.rest(&c.Conn)
		c.args.set(argsRoom(cap(c.parser.spans)))
	}
}

// answerAll answers or passes on the complete commands, and those that came while the upstream was waited for.
func (c *session) answerAll() error {
	for {
		if err := c.answerHere(); err != nil {
			return err
		}
		came := len(c.in)
		if err := c.finishRun(); err != nil || len(c.in) == came {
			return err
		}
	}
}

// answerHere answers the complete commands that are here, or adds them to the run.
func (c *session) answerHere() error {
	for c.from < len(c.in) {
		n, err := c.answerNext()
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		c.from += n
	}
	return nil
}

// answerNext answers a command, or adds it to the run, and returns its length; 0 if it is not complete.
func (c *session) answerNext() (n int, err error) {
	cmd, n, err := c.parser.next(c.in[c.from:])
	switch {
	case err != nil:
		return 0, c.fail(err)
	case !c.args.set(argsRoom(max(cap(c.parser.spans), cap(cmd.args)))):
		return 0, refuseHeld(&c.Conn)
	case len(cmd.args) == 0:
		return n, nil
	}
	return n, c.handle(&cmd, n)
}

// fail tells the client of a malformed frame, behind the replies to what came before it.
func (c *session) fail(err error) error {
	if err := c.finishRun(); err != nil {
		return err
	}
	c.server.broken.Inc()
	c.out = append(append(append(c.out, "-ERR "...), err.Error()...), "\r\n"...)
	return err
}

// handle answers one command, or adds it to the run; n is its length.
func (c *session) handle(cmd *command, n int) error {
	if isHTTP(cmd) {
		return errDone
	}
	v, k := verbOf(cmd.args[0])
	switch k {
	case kindRead:
		return c.handleRead(v, cmd, n)
	case kindHandshake:
		return c.handshake(v, cmd, n)
	case kindRelay:
		return c.relay()
	case kindMulti, kindWatch, kindEnd, kindUnwatch:
		return c.passTransaction(v, cmd, n)
	}
	return c.pass(v, cmd, n)
}

// isLocal reports whether this connection's reads may be answered here.
func (c *session) isLocal() bool { return c.isOwn() && !c.isPinned() }

// isOwn reports whether the connection is of the sidecar's user and database.
func (c *session) isOwn() bool { return c.loggedIn && c.db == c.server.cfg.DB }

// handleRead answers a read of a board, or passes it on.
func (c *session) handleRead(v verb, cmd *command, n int) error {
	q, ok := c.server.facts.Load().parseForm(v, cmd.args)
	if len(cmd.args) > 1 {
		q.board, ok = c.server.boardOf(cmd.args[1], ok)
	}
	if c.server.isSplit(q.board) && c.isOwn() {
		return c.handleSplit(v, cmd, q.board)
	}
	if !ok {
		if len(cmd.args) > 1 {
			c.server.unfit.note(cmd.args[1])
		}
		return c.pass(v, cmd, n)
	}
	c.server.reader.Count(q.board)
	if c.isLocal() {
		answered, err := c.answerRead(&q, n)
		if answered || err != nil {
			return err
		}
		if off := c.lookup.off; !off.IsZero() && !c.isBehind(&q, off) {
			c.agree.asked = append(c.agree.asked, asked{span{c.from, c.from + n}, c.run.commands})
		}
	}
	return c.pass(v, cmd, n)
}

// isBehind reports whether a copy that was current at a time is too old for a read of this connection.
func (c *session) isBehind(q *form, at time.Time) bool {
	return !c.server.fresh(at) || c.writes.after(q.key, at) || c.server.named.after(q, at)
}

// answerRead answers a read of length n if its board is here, fresh and has this connection's writes, or is split.
func (c *session) answerRead(q *form, n int) (answered bool, err error) {
	s, l := c.server, &c.lookup
	for {
		l.read(s.reader, q, s.cfg.MaxAge)
		a := &l.as[0]
		if q.split && a.Err == nil && c.writes.after(q.key, a.CurrentAt) {
			l.read(s.reader, q, time.Nanosecond) // no copy is as new
		}
		switch {
		case errors.Is(a.Err, sidecar.ErrBlocked):
			return true, c.respond(q.verb, sourceRefused, "-ERR RANKCACHE board is blocked by the operator\r\n")
		case a.Err != nil && q.split:
			return true, c.respond(q.verb, sourceRefused, splitRefusal(a.Err))
		case !q.split && (a.Err != nil || c.isBehind(q, a.CurrentAt)):
			return false, nil
		}
		reply, ok := l.append(c.out, q, s, c.proto)
		switch {
		case !ok && q.split:
			return true, c.respond(q.verb, sourceRefused, splitRefusal(errRows))
		case !ok:
			return false, nil
		case c.run.commands == 0:
			if a.Source == rankcache.SourceHot {
				c.show(n, reply)
			}
			c.out = reply
			from := min(source(a.Source), sourcePassed) // of a split board also a ledger's
			s.counts.add(c.id, q.verb, from)
			if from == sourcePassed {
				c.timing.pass(false)
			}
			return true, c.flushIf(flushAt)
		}
		if err := c.finishRun(); err != nil { // its replies come first, and may take long
			return false, err
		}
	}
}

// handshake answers a greeting; while the upstream is open, and before the client's log-in, that does.
func (c *session) handshake(v verb, cmd *command, n int) error {
	if v == quit {
		if err := c.respond(v, sourceHere, "+OK\r\n"); err != nil {
			return err
		}
		return errDone
	}
	if c.multi { // what it changes is known at EXEC
		if v == ping || v == echo {
			return c.pass(v, cmd, n)
		}
		return c.relay()
	}
	c.server.await()
	begin := handshake{c.greeting, c.id, &c.server.cfg, c.server.facts.Load()}
	next, reply, k := begin.greeted(v, cmd.args)
	switch {
	case k == kindRelay:
		return c.relay()
	case k == kindPass:
		return c.pass(v, cmd, n)
	case v == ping || v == echo || strings.HasPrefix(reply, "-"):
		return c.respond(v, sourceHere, reply)
	case c.up == nil && next.loggedIn:
		c.greeting = next
		return c.respond(v, sourceHere, reply)
	}
	c.timing.pass(false)
	answer, err := c.exchange(cmd.raw)
	if err != nil {
		return err
	}
	if answer[0] != '-' {
		c.greeting = next
	}
	c.server.counts.add(c.id, v, sourcePassed)
	c.out = append(c.out, answer...)
	return nil
}

// respond answers with a text, behind the replies that are awaited.
func (c *session) respond(v verb, from source, reply string) error {
	if err := c.finishRun(); err != nil {
		return err
	}
	c.server.counts.add(c.id, v, from)
	c.out = append(c.out, reply...)
	return nil
}

func (c *session) flush() error { return c.flushIf(1) }

// flushIf sends the replies that are ready, if they have so many bytes.
func (c *session) flushIf(least int) error {
	if len(c.out) < least {
		return nil
	}
	_, err := c.Write(c.out)
	c.out, c.agree.shown = c.out[:0], c.agree.shown[:0]
	return err
}

func (c *session) close() {
	c.closeUpstream()
	c.endUnsure()
	c.shrink()
	c.args.set(0)
	_ = c.Conn.Conn.Close()
	c.server.conns.Remove(c)
}
