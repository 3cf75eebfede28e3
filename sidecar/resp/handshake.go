package resp

import (
	"bytes"
	"strconv"
	"strings"
)

// handshake answers a command by which clients begin. While the upstream is open, and
// before the client is logged in, the upstream answers it.
func (c *session) handshake(v verb, cmd *command, n int) error {
	if v == quit {
		if err := c.say(v, sourceHere, "+OK\r\n"); err != nil {
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
	next, reply, k := c.greeted(v, cmd.args)
	switch {
	case k == kindRelay:
		return c.relay()
	case k == kindPass:
		return c.pass(v, cmd, n)
	case v == ping || v == echo || strings.HasPrefix(reply, "-"):
		return c.say(v, sourceHere, reply)
	case c.up == nil && next.loggedIn:
		c.greeting = next
		return c.say(v, sourceHere, reply)
	}
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

// greeted returns what the client has said with this command, too, and the reply.
// kindPass is a form that the upstream answers, kindRelay one behind which the
// connection is the upstream's.
func (c *session) greeted(v verb, args [][]byte) (next greeting, reply string, k kind) {
	next = c.greeting
	switch {
	case v == hello:
		return c.hello(args[1:])
	case v == client && len(args) > 1:
		return c.client(args[1:])
	case v == auth && len(args) == 2 && c.server.isOwn(nil, args[1]), v == auth && len(args) == 3 && c.server.isOwn(args[1], args[2]):
		next.loggedIn = true
		return next, "+OK\r\n", kindHandshake
	case v == auth && (len(args) == 2 || len(args) == 3):
		return next, "", kindRelay
	case v == selectDB && len(args) == 2:
		if string(args[1]) != strconv.Itoa(c.server.cfg.DB) {
			return next, "", kindRelay
		}
		next.db = c.server.cfg.DB
		return next, "+OK\r\n", kindHandshake
	case !c.loggedIn:
	case v == ping && len(args) == 1:
		return next, "+PONG\r\n", kindHandshake
	case (v == ping || v == echo) && len(args) == 2:
		return next, string(appendBulk(nil, args[1])), kindHandshake
	}
	return next, "", kindPass
}

// hello answers HELLO [version [AUTH user password] [SETNAME name]].
func (c *session) hello(args [][]byte) (next greeting, reply string, k kind) {
	next = c.greeting
	if len(args) > 0 {
		switch string(args[0]) {
		case "2":
			next.proto = 2
		case "3":
			next.proto = 3
		default:
			return next, "", kindPass
		}
		args = args[1:]
	}
	for len(args) > 0 {
		switch {
		case is(args[0], "AUTH") && len(args) > 2:
			if !c.server.isOwn(args[1], args[2]) {
				return next, "", kindRelay
			}
			next.loggedIn, args = true, args[3:]
		case is(args[0], "SETNAME") && len(args) > 1 && isName(args[1]):
			next.name, args = string(args[1]), args[2:]
		default:
			return next, "", kindPass
		}
	}
	f := c.server.facts.Load()
	if f.hello[next.proto] == nil {
		return next, "", kindPass
	}
	return next, string(f.appendHello(nil, next.proto, c.id)), kindHandshake
}

// client answers subcommands of CLIENT.
func (c *session) client(args [][]byte) (next greeting, reply string, k kind) {
	next = c.greeting
	sub, f := string(upper(nil, args[0])), c.server.facts.Load()
	if unknown := f.unknown[sub]; unknown != "" && c.loggedIn {
		return next, strings.Replace(unknown, sub, string(args[0]), 1), kindHandshake
	}
	switch {
	case sub == "ID" && len(args) == 1:
		return next, string(appendInt(nil, int(c.id))), kindHandshake
	case sub == "GETNAME" && len(args) == 1:
		if c.name == "" {
			return next, string(encoder{proto: c.proto}.null(nil, false)), kindHandshake
		}
		return next, string(appendBulk(nil, c.name)), kindHandshake
	case sub == "SETNAME" && len(args) == 2 && isName(args[1]):
		next.name = string(args[1])
		return next, "+OK\r\n", kindHandshake
	case sub == "SETINFO" && len(args) == 3 && isName(args[2]) && len(f.flags) > 0:
		switch {
		case is(args[1], "LIB-NAME"):
			next.library = string(args[2])
			return next, "+OK\r\n", kindHandshake
		case is(args[1], "LIB-VER"):
			next.version = string(args[2])
			return next, "+OK\r\n", kindHandshake
		}
		return next, "", kindPass
	case sub == "ID" || sub == "GETNAME" || sub == "SETNAME" || sub == "SETINFO":
		return next, "", kindPass
	}
	return next, "", kindRelay
}

// isName reports whether Redis accepts it as a name: printable, without a space.
func isName(s []byte) bool {
	return bytes.IndexFunc(s, func(r rune) bool { return r < '!' || r > '~' }) < 0
}
