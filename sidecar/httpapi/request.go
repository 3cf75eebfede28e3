package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"rankcache"
	"rankcache/sidecar/encode"
)

// call is the state of one request; a connection uses one for all, so that it has the answer until that is written.
type call struct {
	route  route
	ctx    context.Context // of its calls to Redis
	qs     [1]rankcache.Query
	as     [1]rankcache.Answer
	member [1]string // the member of the path, or the caller
	scores rankcache.ScoreRange
	args   args
	classRead
	texts
	out  []byte // an answer made for this request alone
	etag []byte // its tag

	noKey bool // the answer is that Redis has no such key
}

func (c *call) query() *rankcache.Query { return &c.qs[0] }

// name makes m the member that is asked for.
func (c *call) name(m string) {
	c.member[0] = m
	c.qs[0].Members = c.member[:]
}

// me reports whether a page is asked for together with the caller.
func (c *call) me() bool { return c.route.page() && len(c.qs[0].Members) > 0 }

// surrounded reports whether a member is wanted with what stands next to it.
func (c *call) surrounded() bool { return c.qs[0].Around > 0 || c.qs[0].Gap }

// callOf returns the call of the request's connection, reset.
func callOf(ctx *fasthttp.RequestCtx) *call {
	conn, ok := ctx.Conn().(*clientConn)
	if !ok || conn.call == nil {
		c := new(call)
		if ok {
			conn.call = c
		}
		return c
	}
	conn.call.reset()
	return conn.call
}

const maxRoomKept = 4 << 10 // the longest answer, in bytes, whose memory an idle connection keeps

// shrink frees the memory of an unusually long answer.
func (c *call) shrink() {
	if cap(c.out) > maxRoomKept {
		c.out, c.decoded, c.as[0] = nil, nil, rankcache.Answer{}
	}
}

// reset forgets the request before: its strings have been overwritten.
func (c *call) reset() {
	decoded, out, etag, own := c.decoded, c.out, c.etag, c.as[0].Own
	*c = call{} // in place: a value made of c's own fields would be built apart and copied
	c.decoded, c.out, c.etag, c.as[0].Own = decoded[:0], out[:0], etag[:0], own
}

// release frees what the answer holds of a board: a connection that is idle may be so for long.
func (c *call) release() {
	own := c.as[0].Own
	clear(own)
	c.as[0] = rankcache.Answer{Own: own[:0]}
}

type route uint8 // the resource that a path names; it is also a metric label

const (
	routeNone route = iota
	routeTop
	routeMember
	routeBatch
	routeProfile
	routeProfiles
	routeReference
	routeBoards
	routeClasses
	routeClassTop
	routeClassMember
	routeClassBatch
	routeScore
	routeClassScore
	routeCompat
	routes
)

func (r route) String() string {
	return [...]string{"none", "top", "member", "members_batch", "profile", "profiles_batch", "openapi", "boards_batch",
		"classes", "class_top", "class_member", "class_members_batch", "score", "class_score", "compat"}[r]
}

// post reports whether the route takes POST; all others by GET or HEAD.
func (r route) post() bool { return r.batch() || r == routeProfiles || r == routeBoards }

// batch reports whether the route answers a list of members.
func (r route) batch() bool { return r == routeBatch || r == routeClassBatch }

func (r route) page() bool { return r == routeTop || r == routeClassTop }

// byClass reports whether the route names the board by its class.
func (r route) byClass() bool {
	return r >= routeClassTop && r <= routeClassBatch || r == routeClassScore
}

// score reports whether the route answers which rank a score has.
func (r route) score() bool { return r == routeScore || r == routeClassScore }

// parsePath splits the raw path before it decodes: a member id may hold an encoded slash.
func (c *call) parsePath(path []byte) *encode.Problem {
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
	if rest, ok := bytes.CutPrefix(path, []byte("/v1/classes")); ok {
		return c.classRoute(rest)
	}
	switch string(path) {
	case "/v1/boards:batch":
		c.route = routeBoards
		return nil
	case "/openapi.yaml":
		c.route = routeReference
		return nil
	}
	return unknownPath()
}

func (c *call) boardRoute(rest []byte) *encode.Problem {
	switch {
	case string(rest) == "top":
		c.route = routeTop
		return nil
	case string(rest) == "members:batch":
		c.route = routeBatch
		return nil
	}
	if score, ok := bytes.CutPrefix(rest, []byte("scores/")); ok && bytes.IndexByte(score, '/') < 0 {
		c.route = routeScore
		return c.setScore(score)
	}
	member, ok := bytes.CutPrefix(rest, []byte("members/"))
	if !ok || bytes.IndexByte(member, '/') >= 0 {
		return unknownPath()
	}
	c.route = routeMember
	return c.setMember(member)
}

func (c *call) classRoute(rest []byte) *encode.Problem {
	if len(rest) == 0 {
		c.route = routeClasses
		return nil
	}
	rest, ok := bytes.CutPrefix(rest, []byte("/"))
	if !ok {
		return unknownPath()
	}
	name, rest, _ := bytes.Cut(rest, []byte("/"))
	if p := c.boardRoute(rest); p != nil {
		return p
	}
	switch c.route {
	case routeTop:
		c.route = routeClassTop
	case routeMember:
		c.route = routeClassMember
	case routeBatch:
		c.route = routeClassBatch
	case routeScore:
		c.route = routeClassScore
	}
	if c.args.name, ok = c.decode(name, false); !ok {
		return encode.BadArgument("class", "want the name of a class")
	}
	return nil
}

func unknownPath() *encode.Problem {
	return &encode.Problem{Code: encode.CodeUnknownPath, Detail: "want /v1/boards/{board}/top, " +
		"/v1/boards/{board}/members/{member}, /v1/boards/{board}/scores/{score}, /v1/boards/{board}/members:batch, /v1/boards:batch, " +
		"/v1/classes, /v1/classes/{class}/top, /v1/classes/{class}/members/{member}, /v1/classes/{class}/scores/{score}, /v1/classes/{class}/members:batch, " +
		"/v1/profiles/{member}, /v1/profiles:batch or /openapi.yaml"}
}

func (c *call) setBoard(raw []byte) *encode.Problem {
	s, ok := c.decode(raw, false)
	c.query().Board = rankcache.BoardID(s)
	if !ok {
		return encode.BadArgument("board", "want a percent-encoded board id")
	}
	if err := c.query().Board.Check(); err != nil {
		return encode.BadArgument("board", err.Error())
	}
	return nil
}

func (c *call) setMember(raw []byte) *encode.Problem {
	m, ok := c.decode(raw, false)
	if c.name(m); !ok {
		return encode.BadArgument("member", "want a percent-encoded member id")
	}
	if err := rankcache.CheckMember(m); err != nil {
		return encode.BadArgument("member", err.Error())
	}
	return nil
}

// setScore asks for the rows with one score.
func (c *call) setScore(raw []byte) *encode.Problem {
	text, ok := c.decode(raw, false)
	n, valid := parseScore(text)
	if !ok || !valid {
		return encode.BadArgument("score", fmt.Sprintf("is %.40q: want a number", text))
	}
	c.scores = rankcache.ScoreRange{Least: n, Most: n, Shown: true}
	c.query().Range = &c.scores
	return nil
}

// nameBoard sets the board of the call's class, dimensions and time. The rest of the call is a read of that board.
func (c *call) nameBoard(now time.Time) (p *encode.Problem) {
	from := len(c.decoded)
	c.decoded, p = c.appendBoard(c.decoded, c.args.at, now)
	if p != nil {
		return p
	}
	c.query().Board = rankcache.BoardID(view(c.decoded[from:]))
	if c.args.trend {
		return c.findBefore(now)
	}
	return nil
}

// fields returns those that all answers of the source to such calls have in common.
func (c *call) fields(source rankcache.Source) *fasthttp.ResponseHeader {
	if c.me() {
		return &privateFields[source]
	}
	return &sharedFields[source]
}

func (c *call) checkMethod(h *fasthttp.RequestHeader) *encode.Problem {
	switch {
	case c.route.post() && !h.IsPost():
		return &encode.Problem{Code: encode.CodeBadMethod, Allow: "POST"}
	case !c.route.post() && !h.IsGet() && !h.IsHead():
		return &encode.Problem{Code: encode.CodeBadMethod, Allow: "GET, HEAD"}
	}
	return nil
}

type texts struct{ decoded []byte } // holds the strings of a request that came percent-encoded

// decode returns the percent-decoded raw; plus is whether "+" means a space, as in a query. The string shares the
// memory of the request or of the call: it must not be used after the request was answered.
func (t *texts) decode(raw []byte, plus bool) (string, bool) {
	if bytes.IndexByte(raw, '%') < 0 && (!plus || bytes.IndexByte(raw, '+') < 0) {
		return view(raw), true
	}
	from := len(t.decoded)
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
		t.decoded = append(t.decoded, b)
	}
	return view(t.decoded[from:]), true
}

// view returns b as a string without a copy. When decoded grows, earlier views keep its old memory.
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
