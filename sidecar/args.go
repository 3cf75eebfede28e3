package sidecar

import (
	"bytes"
	"fmt"
	"time"

	"rankcache"
	"rankcache/rooms"
)

// defaultLimit is how many rows a top has when the caller does not say.
const defaultLimit = 50

// args are the query arguments of one request.
type args struct {
	start, limit int
	around       int // -1: no neighbours asked for
	profiles     bool
	me           bool // c.member holds who asks
	seen         [argCount]bool
}

// The query arguments. Unknown and repeated ones are errors: a misspelt limit
// would otherwise be answered with the wrong page.
const (
	argStart = iota
	argLimit
	argOrder
	argMe
	argProfiles
	argRoom
	argAround
	argMaxAge
	argMinSeq
	argWait
	argCount
)

var argNames = [argCount]string{"start", "limit", "order", "me", "profiles", "room", "around", "max_age_ms", "min_seq", "wait_ms"}

// argsOf says which arguments a route takes.
var argsOf = [routes][argCount]bool{
	routeTop: {argStart: true, argLimit: true, argOrder: true, argMe: true, argProfiles: true, argRoom: true,
		argMaxAge: true, argMinSeq: true, argWait: true},
	routeMember: {argOrder: true, argProfiles: true, argRoom: true, argAround: true,
		argMaxAge: true, argMinSeq: true, argWait: true},
	routeBatch: {argOrder: true, argProfiles: true, argRoom: true,
		argMaxAge: true, argMinSeq: true, argWait: true},
}

// parseArgs fills the call from the raw query.
func (c *call) parseArgs(query []byte) *problem {
	c.args = args{limit: defaultLimit, around: -1}
	for len(query) > 0 {
		var pair []byte
		if i := bytes.IndexByte(query, '&'); i >= 0 {
			pair, query = query[:i], query[i+1:]
		} else {
			pair, query = query, nil
		}
		if len(pair) == 0 {
			continue
		}
		if p := c.parseArg(pair); p != nil {
			return p
		}
	}
	return nil
}

func (c *call) parseArg(pair []byte) *problem {
	var raw []byte
	if i := bytes.IndexByte(pair, '='); i >= 0 {
		pair, raw = pair[:i], pair[i+1:]
	}
	for arg, name := range argNames {
		if string(pair) != name {
			continue
		}
		if c.args.seen[arg] {
			return badArgument(name, "is given twice")
		}
		if !argsOf[c.route][arg] {
			break
		}
		c.args.seen[arg] = true
		value, ok := c.decode(raw, true)
		if !ok {
			return badArgument(name, "is not percent-encoded")
		}
		return c.setArg(arg, value)
	}
	return badArgument(string(pair[:min(len(pair), 40)]), "is no argument here: want "+c.route.wants())
}

// setArg checks one decoded value.
func (c *call) setArg(arg int, value string) *problem {
	switch arg {
	case argStart:
		return setNumber(&c.args.start, "start", value, 0, maxStart)
	case argLimit:
		return setNumber(&c.args.limit, "limit", value, 1, rankcache.MaxTop)
	case argAround:
		return setNumber(&c.args.around, "around", value, 0, MaxAround)
	case argOrder:
		return setWord(value, "order", "desc", "asc", func(asc bool) {
			if asc {
				c.query.Order = rankcache.Ascending
			}
		})
	case argProfiles:
		return setWord(value, "profiles", "0", "1", func(on bool) { c.args.profiles = on })
	case argRoom:
		return c.setRoom(value)
	case argMaxAge, argMinSeq, argWait:
		return c.setBound(arg, value)
	}
	c.args.me, c.member[0] = true, value
	if err := rankcache.CheckMember(value); err != nil {
		return badArgument("me", err.Error())
	}
	return nil
}

func (c *call) setRoom(uid string) *problem {
	c.query.Room = uid
	if err := rooms.CheckUID(uid); err != nil {
		return badArgument("room", err.Error())
	}
	return nil
}

// Limits of the arguments that bound the age of an answer.
const (
	maxAgeMs = 24 * 60 * 60 * 1000
	maxSeq   = 1 << 53 // what JSON carries to every reader
)

// setBound reads one of the arguments that bound the age of the answer. An age of
// 0 is one that no copy has: only an answer of Redis will do.
func (c *call) setBound(arg int, value string) (p *problem) {
	n := 0
	switch arg {
	case argMaxAge:
		p = setNumber(&n, "max_age_ms", value, 0, maxAgeMs)
		c.query.MaxAge = max(time.Duration(n)*time.Millisecond, 1)
	case argMinSeq:
		p = setNumber(&n, "min_seq", value, 0, maxSeq)
		c.query.MinSeq = uint64(n)
	default:
		p = setNumber(&n, "wait_ms", value, 0, int(MaxWait/time.Millisecond))
		c.query.Wait = time.Duration(n) * time.Millisecond
	}
	return p
}

// setNumber reads plain decimal digits.
func setNumber(to *int, name, value string, least, most int) *problem {
	n := 0
	for i := range len(value) {
		d := value[i] - '0'
		if n = n*10 + int(d); d > 9 || n > most {
			n = -1
			break
		}
	}
	if n < least || value == "" {
		return badArgument(name, fmt.Sprintf("is %.40q: want %d to %d", value, least, most))
	}
	*to = n
	return nil
}

// setWord calls set with whether value is the second of the two words.
func setWord(value, name, first, second string, set func(bool)) *problem {
	if value != first && value != second {
		return badArgument(name, fmt.Sprintf("is %.40q: want %s or %s", value, first, second))
	}
	set(value == second)
	return nil
}

// wants names the arguments of a route.
func (r route) wants() string {
	var names string
	for arg, name := range argNames {
		if argsOf[r][arg] {
			names += " " + name
		}
	}
	if names == "" {
		return "none"
	}
	return names[1:]
}
