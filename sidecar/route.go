package sidecar

import (
	"bytes"
	"unsafe"

	"rankcache"
)

// route is what a path asks for; it is also a metric label.
type route uint8

const (
	routeNone route = iota
	routeTop
	routeMember
	routeBatch
	routeProfile
	routeProfiles
	routeReference
	routes
)

func (r route) String() string {
	return [...]string{"none", "top", "member", "members_batch", "profile", "profiles_batch", "openapi"}[r]
}

// post reports whether the route is asked by POST; all others by GET or HEAD.
func (r route) post() bool { return r == routeBatch || r == routeProfiles }

// parsePath fills the call from the raw path: segments are split before they are
// decoded, so that a member id may hold an encoded slash.
func (c *call) parsePath(path []byte) *problem {
	if rest, ok := bytes.CutPrefix(path, []byte("/v1/boards/")); ok {
		board, rest, _ := bytes.Cut(rest, []byte("/"))
		if p := c.boardRoute(rest); p != nil {
			return p
		}
		return c.setBoard(board)
	}
	if rest, ok := bytes.CutPrefix(path, []byte("/v1/profiles")); ok {
		if string(rest) == ":batch" {
			c.route = routeProfiles
			return nil
		}
		if member, ok := bytes.CutPrefix(rest, []byte("/")); ok && bytes.IndexByte(member, '/') < 0 {
			c.route = routeProfile
			return c.setMember(member)
		}
	}
	if string(path) == pathOpenAPI {
		c.route = routeReference
		return nil
	}
	return unknownPath()
}

// boardRoute reads what follows the board.
func (c *call) boardRoute(rest []byte) *problem {
	switch {
	case string(rest) == "top":
		c.route = routeTop
		return nil
	case string(rest) == "members:batch":
		c.route = routeBatch
		return nil
	}
	member, ok := bytes.CutPrefix(rest, []byte("members/"))
	if !ok || bytes.IndexByte(member, '/') >= 0 {
		return unknownPath()
	}
	c.route = routeMember
	return c.setMember(member)
}

func unknownPath() *problem {
	return &problem{code: CodeUnknownPath, detail: "want /v1/boards/{board}/top, " +
		"/v1/boards/{board}/members/{member}, /v1/boards/{board}/members:batch, " +
		"/v1/profiles/{member}, /v1/profiles:batch or /openapi.yaml"}
}

func (c *call) setBoard(raw []byte) *problem {
	s, ok := c.decode(raw, false)
	c.query.Board = rankcache.BoardID(s)
	if !ok {
		return badArgument("board", "want a percent-encoded board id")
	}
	if err := c.query.Board.Check(); err != nil {
		return badArgument("board", err.Error())
	}
	return nil
}

func (c *call) setMember(raw []byte) *problem {
	var ok bool
	if c.member[0], ok = c.decode(raw, false); !ok {
		return badArgument("member", "want a percent-encoded member id")
	}
	if err := rankcache.CheckMember(c.member[0]); err != nil {
		return badArgument("member", err.Error())
	}
	return nil
}

// decode returns the percent-decoded raw; plus says whether "+" is a space, as
// it is in a query. The string shares the memory of the request or of the call:
// it must not be used after the request was answered.
func (c *call) decode(raw []byte, plus bool) (string, bool) {
	if bytes.IndexByte(raw, '%') < 0 && (!plus || bytes.IndexByte(raw, '+') < 0) {
		return view(raw), true
	}
	from := len(c.decoded)
	for i := 0; i < len(raw); i++ {
		b := raw[i]
		switch {
		case b == '+' && plus:
			b = ' '
		case b == '%':
			if i+2 >= len(raw) || unhex(raw[i+1]) > 15 || unhex(raw[i+2]) > 15 {
				return "", false
			}
			b = unhex(raw[i+1])<<4 | unhex(raw[i+2])
			i += 2
		}
		c.decoded = append(c.decoded, b)
	}
	return view(c.decoded[from:]), true
}

// view returns b as a string without a copy. When decoded grows, earlier views
// keep its old memory, which nobody writes any more.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// unhex returns the value of a hex digit, 255 for any other byte.
func unhex(b byte) byte {
	switch {
	case b >= '0' && b <= '9':
		return b - '0'
	case b >= 'a' && b <= 'f':
		return b - 'a' + 10
	case b >= 'A' && b <= 'F':
		return b - 'A' + 10
	}
	return 255
}
