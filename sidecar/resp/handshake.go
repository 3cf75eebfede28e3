package resp

import (
	"bytes"
	"strconv"
	"strings"
)

// greeting is what a client has set before its first command, to be repeated to its upstream.
type greeting struct {
	proto            version
	loggedIn         bool // as the sidecar's own user
	db               int
	name             string
	library, version string
}

// commands returns the commands for a new upstream, and how many of the first must succeed.
func (g *greeting) commands(credentials func() (user, password string)) (all [][]string, needed int) {
	if user, password := credentials(); g.loggedIn && password != "" {
		if user == "" {
			all = append(all, []string{"AUTH", password})
		} else {
			all = append(all, []string{"AUTH", user, password})
		}
	}
	if g.proto == 3 {
		all = append(all, []string{"HELLO", "3"})
	}
	if g.db != 0 {
		all = append(all, []string{"SELECT", strconv.Itoa(g.db)})
	}
	needed = len(all)
	for _, set := range [][]string{{"CLIENT", "SETNAME", g.name}, {"CLIENT", "SETINFO", "LIB-NAME", g.library}, {"CLIENT", "SETINFO", "LIB-VER", g.version}} {
		if set[len(set)-1] != "" {
			all = append(all, set)
		}
	}
	return all, needed
}

// handshake is what the replies to a client's first commands depend on.
type handshake struct {
	greeting
	id    uint64
	cfg   *Config
	facts *facts
}

// greeted returns the greeting with this command, and the reply: kindPass goes upstream, kindRelay for good.
func (h *handshake) greeted(v verb, args [][]byte) (next greeting, reply string, k kind) {
	next = h.greeting
	switch {
	case v == hello:
		return h.hello(args[1:])
	case v == client && len(args) > 1:
		return h.client(args[1:])
	case v == auth && len(args) == 2 && h.cfg.isOwn(nil, args[1]), v == auth && len(args) == 3 && h.cfg.isOwn(args[1], args[2]):
		next.loggedIn = true
		return next, "+OK\r\n", kindHandshake
	case v == auth && (len(args) == 2 || len(args) == 3):
		return next, "", kindRelay
	case v == selectDB && len(args) == 2:
		if string(args[1]) != strconv.Itoa(h.cfg.DB) {
			return next, "", kindRelay
		}
		next.db = h.cfg.DB
		return next, "+OK\r\n", kindHandshake
	case !h.loggedIn:
	case v == ping && len(args) == 1:
		return next, "+PONG\r\n", kindHandshake
	case (v == ping || v == echo) && len(args) == 2:
		return next, string(appendBulk(nil, args[1])), kindHandshake
	}
	return next, "", kindPass
}

func (h *handshake) hello(args [][]byte) (next greeting, reply string, k kind) {
	next = h.greeting
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
			if !h.cfg.isOwn(args[1], args[2]) {
				return next, "", kindRelay
			}
			next.loggedIn, args = true, args[3:]
		case is(args[0], "SETNAME") && len(args) > 1 && isName(args[1]):
			next.name, args = string(args[1]), args[2:]
		default:
			return next, "", kindPass
		}
	}
	if h.facts.hello[next.proto] == nil {
		return next, "", kindPass
	}
	return next, string(h.facts.appendHello(nil, next.proto, h.id)), kindHandshake
}

func (h *handshake) client(args [][]byte) (next greeting, reply string, k kind) {
	next = h.greeting
	sub := string(upper(nil, args[0]))
	if unknown := h.facts.unknown[sub]; unknown != "" && h.loggedIn {
		return next, strings.Replace(unknown, sub, string(args[0]), 1), kindHandshake
	}
	switch {
	case sub == "ID" && len(args) == 1:
		return next, string(appendInt(nil, int(h.id))), kindHandshake
	case sub == "GETNAME" && len(args) == 1:
		if h.name == "" {
			return next, string(h.proto.null(nil, false)), kindHandshake
		}
		return next, string(appendBulk(nil, h.name)), kindHandshake
	case sub == "SETNAME" && len(args) == 2 && isName(args[1]):
		next.name = string(args[1])
		return next, "+OK\r\n", kindHandshake
	case sub == "SETINFO" && len(args) == 3 && isName(args[2]) && len(h.facts.flags) > 0:
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
