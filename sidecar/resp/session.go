package resp

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/sidecar"
	"rankcache/sidecar/internal/conn"
)

// session is one connection of a client. One goroutine serves it: it answers what it can
// and passes the rest on, a run of commands at a time, and waits for all replies of a run
// before it answers again. So replies are in order without a lock.
type session struct {
	conn.Conn
	server *Server
	id     uint64
	begun  httpserve.Place

	in     []byte
	from   int   // of what is not parsed
	held   int64 // bytes of in that count for maxHeld
	parser parser
	out    []byte
	memo   memo

	greeting
	multi, watching bool
	refused         bool // a command of the transaction was
	writes          writes
	run             run
	up              *upstream // nil: nothing was passed on yet
	// waits is the upstream while no time bounds the waiting for it.
	waits atomic.Pointer[upstream]
}

// run is commands that are passed on together.
type run struct {
	from, to int // in session.in
	commands int
	blocking bool
	pinned   bool // to its upstream, which has a transaction
}

const (
	firstRoom = 4 << 10  // bytes of a connection's buffer at first
	keepRoom  = 16 << 10 // bytes of it that a connection keeps
	flushAt   = 64 << 10 // bytes of replies that are sent while more are made
)

// errDone ends a session that has nothing more to say.
var errDone = errors.New("done")

// OnBytes, OnMore and OnNext implement [conn.Hooks]; all bytes are for Read.
func (c *session) OnBytes(p []byte) (int, bool, error) { return len(p), false, nil }

// OnMore is as OnBytes.
func (c *session) OnMore(p []byte) (int, error) { return len(p), nil }

// OnNext does nothing.
func (c *session) OnNext() {}

// serve answers until the client or an error ends the connection.
func (c *session) serve() error {
	defer c.close()
	c.AnswerSent() // so that a silent client may wait as long as an idle one
	c.Enter(httpserve.ReadingHead)
	for {
		if err := c.read(); err != nil {
			return err
		}
		c.begun = c.BeginAnswer()
		c.out = c.server.takeBuffer()
		err := c.answerAll()
		if errors.Is(err, errDone) || errors.As(err, new(protocolError)) {
			_ = c.flush()
			return err
		}
		if err == nil {
			err = c.flush()
		}
		if err == nil {
			err = c.EndAnswer(c.begun)
		}
		if err != nil {
			return err
		}
		c.server.giveBuffer(c.out)
		c.rest()
	}
}

// read reads more of what the client sends.
func (c *session) read() error {
	if len(c.in) == cap(c.in) {
		if err := c.grow(max(firstRoom, 2*len(c.in))); err != nil {
			return err
		}
	}
	empty := len(c.in) == 0
	n, err := c.Read(c.in[len(c.in):cap(c.in)])
	c.in = c.in[:len(c.in)+n]
	if n > 0 {
		if empty {
			c.RequestBegun()
		}
		return nil
	}
	return err
}

// errHeld is what a client gets whose large command is one too many.
var errHeld = errors.New("-ERR RANKCACHE too many large commands at once\r\n")

// grow makes room for so many bytes, if the large commands of all connections leave it.
func (c *session) grow(room int) error {
	if more := int64(room) - c.held; room > keepRoom {
		if c.server.held.Add(more) > maxHeld {
			c.server.held.Add(-more)
			_, _ = c.Write([]byte(errHeld.Error()))
			return errHeld
		}
		c.held += more
	}
	c.in = append(make([]byte, 0, room), c.in...)
	return nil
}

// shrink gives back the room of what was read.
func (c *session) shrink() {
	c.in = nil
	c.server.held.Add(-c.held)
	c.held = 0
}

// rest is called between two reads: it keeps the beginning of a command, and gives back
// what one large command took.
func (c *session) rest() {
	left := copy(c.in, c.in[c.from:])
	began := c.from > 0
	c.in, c.from = c.in[:left], 0
	if left == 0 && cap(c.in) > keepRoom {
		c.shrink()
	}
	if !began && left > 0 { // more of the command that had begun
		c.Enter(httpserve.ReadingHead)
		return
	}
	c.AnswerSent()
	if left > 0 {
		c.RequestBegun()
	}
}

// answerAll answers and passes on the complete commands that are here.
func (c *session) answerAll() error {
	for c.from < len(c.in) {
		n, err := c.answerKnown()
		if n == 0 && err == nil {
			n, err = c.answerNext()
		}
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		c.from += n
	}
	return c.finishRun()
}

// answerKnown answers a command whose bytes came before, and returns its length; 0 if the
// next is none.
func (c *session) answerKnown() (n int, err error) {
	if c.parser.pos != 0 || !c.isLocal() {
		return 0, nil
	}
	e := c.memo.find(c.in[c.from:])
	if e == nil {
		return 0, nil
	}
	n = len(e.raw)
	answered, err := c.answerRead(&e.form)
	if !answered || err != nil {
		return 0, err
	}
	c.server.reader.Count(e.form.board)
	return n, nil
}

// answerNext answers a command, or adds it to the run, and returns its length; 0 if it is
// not complete.
func (c *session) answerNext() (n int, err error) {
	cmd, n, err := c.parser.next(c.in[c.from:])
	switch {
	case err != nil:
		return 0, c.fail(err)
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
		return c.transaction(v, cmd, n)
	}
	return c.pass(v, cmd, n)
}

// isHTTP reports whether the line is of an HTTP request, which a page in a browser can
// have it send here.
func isHTTP(cmd *command) bool {
	if cmd.raw[0] == '*' {
		return false
	}
	name, last := cmd.args[0], cmd.args[len(cmd.args)-1]
	return is(name, "POST") || is(name, "HOST:") || is(name, "GET") && len(last) > 5 && is(last[:5], "HTTP/")
}

// isLocal reports whether this connection's reads may be answered here.
func (c *session) isLocal() bool {
	return c.loggedIn && !c.multi && !c.watching && c.db == c.server.cfg.DB
}

// handleRead answers a read of a board, or passes it on.
func (c *session) handleRead(v verb, cmd *command, n int) error {
	q, ok := c.server.facts.Load().parseForm(v, cmd.args)
	if len(cmd.args) > 1 {
		q.board, ok = c.server.boardOf(cmd.args[1], ok)
	}
	if !ok {
		return c.pass(v, cmd, n)
	}
	c.server.reader.Count(q.board)
	if c.isLocal() {
		answered, err := c.answerRead(&q)
		if err != nil {
			return err
		}
		if answered {
			c.memo.add(cmd.raw, &q)
			return nil
		}
	}
	return c.pass(v, cmd, n)
}

// boardOf returns the board of a key.
func (s *Server) boardOf(key []byte, well bool) (rankcache.BoardID, bool) {
	board, ok := s.cfg.Names.BoardOfKey(text(key))
	return board, ok && well
}

// answerRead answers the read if the board is here, fresh enough, and as new as the
// writes of this connection.
func (c *session) answerRead(q *form) (answered bool, err error) {
	s := c.server
	for {
		kept, err := s.reader.Copy(&sidecar.Query{Board: q.board})
		switch {
		case errors.Is(err, sidecar.ErrBlocked):
			return true, c.say(q.verb, sourceRefused, "-ERR RANKCACHE board is blocked by the operator\r\n")
		case err != nil || kept.Source == sidecar.SourceRedis || !s.fresh(kept.CurrentAt) || c.writes.after(q.key, kept.CurrentAt):
			return false, nil
		}
		reply, ok := s.answer(c.out, q, &kept, encoder{c.proto, s.facts.Load().format})
		switch {
		case !ok:
			return false, nil
		case c.run.commands == 0:
			c.out = reply
			s.counts.add(c.id, q.verb, source(kept.Source))
			return true, c.flushIf(flushAt)
		}
		if err := c.finishRun(); err != nil { // its replies come first, and may take long
			return false, err
		}
	}
}

// say answers with a text, behind the replies that are awaited.
func (c *session) say(v verb, from source, reply string) error {
	if err := c.finishRun(); err != nil {
		return err
	}
	c.server.counts.add(c.id, v, from)
	c.out = append(c.out, reply...)
	return nil
}

// pass adds a command to the run.
func (c *session) pass(v verb, cmd *command, n int) error {
	f := c.server.facts.Load().flagsOf(cmd.args[0])
	if !f.readonly && (v < zRevRange || v > zCount) { // reads are known before anything is learned
		if reply := c.server.refuses(cmd.args); reply != "" {
			c.refused = c.multi
			return c.say(v, sourceRefused, reply)
		}
		c.writes.begun(v, cmd.args)
	}
	c.server.counts.add(c.id, v, sourcePassed)
	if c.run.commands == 0 {
		c.run.from, c.run.pinned = c.from, c.multi || c.watching
	}
	c.run.to = c.from + n
	c.run.commands++
	c.run.blocking = c.run.blocking || f.blocking
	return nil
}

// finishRun passes the run on and its replies back.
func (c *session) finishRun() error {
	r := c.run
	if r.commands == 0 {
		return nil
	}
	c.run = run{}
	if err := c.open(r.pinned); err != nil {
		return c.away(r.commands, err)
	}
	if err := c.up.send(c.in[r.from:r.to], r.commands, c.server.cfg.WriteTimeout); err != nil {
		return err
	}
	err := c.receiveAll(r.blocking, false)
	c.writes.ended()
	return err
}

// away answers commands that can't be passed on. A transaction can't have begun.
func (c *session) away(commands int, err error) error {
	c.multi, c.watching, c.refused = false, false, false
	c.writes.dropped()
	for range commands {
		c.out = append(c.out, awayReply(err)...)
	}
	return nil
}

// receiveAll passes replies back until none is awaited. Nothing that has come waits for
// what has not, unless keep is set.
func (c *session) receiveAll(watched, keep bool) error {
	for c.up.replies.want > 0 {
		if !keep {
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
		watched = watched || waited
		c.out = append(c.out, p...)
	}
	c.up.used = time.Now()
	return nil
}

// watch waits for the next bytes of the upstream and ends that when the client goes away:
// nobody must take from a list for a client that is gone. What the client sends meanwhile
// is kept.
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

// readAhead reads until its deadline or until it has enough. An error is the end of the
// connection.
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

// open makes sure that there is a connection to the upstream. One that was closed while it
// was idle is replaced, unless a transaction is on it.
func (c *session) open(pinned bool) error {
	if c.up != nil && (pinned || c.up.isAlive()) {
		return nil
	}
	c.closeUpstream()
	nc, err := c.server.dial(c.server.lived, c.greeting)
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
	if err := c.open(c.multi || c.watching); err != nil {
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

func (c *session) flush() error { return c.flushIf(1) }

// flushIf sends the replies that are ready, if they have so many bytes.
func (c *session) flushIf(least int) error {
	if len(c.out) < least {
		return nil
	}
	_, err := c.Write(c.out)
	c.out = c.out[:0]
	return err
}

// Close ends the connection as [conn.Conn.Close] does, also one that waits for the upstream
// without end.
func (c *session) Close() error {
	err := c.Conn.Close()
	if up := c.waits.Load(); up != nil {
		hangUp(up.Conn)
	}
	return err
}

func (c *session) close() {
	c.closeUpstream()
	c.shrink()
	_ = c.Conn.Conn.Close()
	c.server.conns.Remove(c)
}
