package resp

import (
	"bytes"
	"crypto/sha1" // #nosec G505 -- Redis names its scripts by it
	_ "embed"
	"encoding/hex"
	"slices"
	"strconv"

	"rankcache"
	"rankcache/wire"
)

//go:embed logged.lua
var loggedSource string

var (
	loggedScript = wire.Script(loggedSource)
	loggedSHA    = func() string {
		sum := sha1.Sum([]byte(loggedScript)) // #nosec G401 -- see the import
		return hex.EncodeToString(sum[:])
	}()
	// byName and bySource name the script in a call of it. The second can't be unknown to Redis.
	byName   = appendCommandRest(nil, "EVALSHA", loggedSHA)
	bySource = appendCommandRest(nil, "EVAL", loggedScript)
)

// unsureScript has the sum of an open board unknown, and ends its adoption.
var unsureScript = wire.Script(`local meta = redis.call('GET', KEYS[1])
if meta and not META_UNREADABLE and meta:byte(2) % 16 < 2 then
  redis.call('SETRANGE', KEYS[1], 1, string.char(meta:byte(2) % 16 + math.floor(meta:byte(2) / 128) * 128 + 32))
  redis.call('DEL', KEYS[2])
end
return 0`)

const (
	maxCounted  = 64        // members of a command that the script adds up
	maxComposed = 256 << 10 // bytes of a run that has calls of the script
	maxNamed    = 64 << 10  // members that a transaction writes, of which other connections are told
)

// loggedWrites has clients write boards whose changes are logged in Redis, as the writer does.
type loggedWrites struct {
	has     func(rankcache.BoardID) bool // reports whether a board's are; nil: none's
	entries string                       // about how many the log keeps
	names   wire.Names
	learner *learner
}

// board returns the board of a key, if its changes are logged, and this user may run scripts.
func (l *loggedWrites) board(key []byte) (rankcache.BoardID, bool) {
	if l.has == nil || len(key) > maxKey {
		return "", false
	}
	b, ok := l.names.BoardOfKey(text(key))
	return b, ok && l.has(b) && l.learner.facts.Load().scripts
}

// unsure has the sums of boards unknown, before or after a command that the script does not know.
func (l *loggedWrites) unsure(boards []rankcache.BoardID) bool {
	for _, b := range boards {
		if reply, err := l.learner.ask("EVAL", unsureScript, "2", l.names.MetaKey(b), l.names.CountKey(b)); err != nil || reply[0] == '-' {
			return false
		}
	}
	return true
}

// appendScript appends a call of the script, [byName] or [bySource], that runs the command, and returns the places of its
// members in [named]. False: the script does not know it, or Redis has an error for it that a script would tell otherwise.
func (l *loggedWrites) appendScript(dst, name []byte, args [][]byte, proto version) (call []byte, places []uint64, ok bool) {
	if len(args) < 2 {
		return dst, nil, false
	}
	b, logged := l.board(args[1])
	if !logged {
		return dst, nil, false
	}
	first, step, ok := l.membersOf(args)
	if !ok {
		return dst, nil, false
	}
	for i := first; step > 0 && i < len(args); i += step {
		places = append(places, namedPlace(args[1], args[i]))
	}
	const before = 5 // arguments of the script before the command
	dst = appendArray(dst, 6+before+len(args))
	dst = append(dst, name...)
	dst = appendCommandRest(dst, "3", string(args[1]), l.names.MetaKey(b), l.names.CountKey(b), string(b),
		strconv.Itoa(int(proto)), strconv.Itoa(before+1+first), strconv.Itoa(step), l.entries)
	for _, a := range args {
		dst = appendBulk(dst, a)
	}
	return dst, places, true
}

// byRank is what [loggedWrites.membersOf] returns of a command that names its members by their ranks.
const byRank = -1

// membersOf returns where the first member of a well-formed command is among its arguments, and how far apart they are:
// 0 of one that is about the whole key, or [byRank].
func (l *loggedWrites) membersOf(args [][]byte) (first, step int, ok bool) {
	n := len(args)
	switch lower(text(args[0])) {
	case "zadd":
		for first = 2; first < n && isOption(args[first]); first++ {
		}
		first, step, ok = first+1, 2, first < n && (n-first)%2 == 0
	case "zincrby":
		first, step, ok = 3, 1, n == 4
	case "zrem":
		first, step, ok = 2, 1, n >= 3
	case "expire", "pexpire", "expireat", "pexpireat":
		_, options := l.learner.facts.Load().flags["EXPIRETIME"] // both since Redis 7
		return 0, 0, n == 3 || n > 3 && options
	case "persist", "del", "unlink":
		return 0, 0, n == 2
	case "zremrangebyrank":
		return 0, byRank, n == 4
	}
	for i := first; ok && i < n; i += step {
		ok = (i-first)/step < maxCounted && rankcache.CheckMember(text(args[i])) == nil
	}
	return first, step, ok
}

func isOption(arg []byte) bool {
	return is(arg, "NX") || is(arg, "XX") || is(arg, "GT") || is(arg, "LT") || is(arg, "CH") || is(arg, "INCR")
}

// composed is what a run sends that has commands which the script is to run.
type composed struct {
	raw   []byte // nil: what is in session.in
	calls []int  // of the script by its name: which commands of the run
	name  int    // where the first of those has it
}

// bytes returns all that the run sends. Of several commands the first call has the script's source, so that Redis knows
// it when the others come; if it does not, scripts were flushed between them: [errNoScript].
func (r *composed) bytes(source bool) []byte {
	if !source || len(r.calls) == 0 {
		return r.raw
	}
	r.calls = r.calls[1:]
	return slices.Replace(r.raw, r.name, r.name+len(byName), bySource...)
}

// passLogged adds a command to the run that the script is to run, and reports whether it is such a one. In a transaction
// the script is there as its source: a name that Redis does not know would be an error among replies of what was done.
func (c *session) passLogged(cmd *command, n int) (logged bool, err error) {
	name := byName
	if c.multi {
		name = bySource
	}
	call, places, ok := c.server.logged.appendScript(nil, name, cmd.args, c.proto)
	if !ok || !c.isOwn() {
		return false, nil
	}
	if err := c.makeRoom(len(call)); err != nil {
		return false, err
	}
	c.writes.begun(verbOther, cmd.args, c.server.boardOf)
	if len(c.writes.named) < maxNamed {
		c.writes.named = append(c.writes.named, places...)
	}
	c.server.counts.add(c.id, verbOther, sourcePassed)
	c.timing.pass(false)
	r := &c.run.composed
	if r.raw == nil {
		r.raw = append(r.raw, c.in[c.run.from:c.run.to]...)
	}
	if !c.multi {
		if r.calls = append(r.calls, c.run.commands); len(r.calls) == 1 {
			r.name = len(r.raw) + bytes.IndexByte(call, '\n') + 1
		}
	}
	r.raw = append(r.raw, call...)
	c.extend(n)
	return true, nil
}

// makeRoom ends a run that would be too large to be composed.
func (c *session) makeRoom(n int) error {
	if c.run.commands == 0 || max(len(c.run.composed.raw), c.run.to-c.run.from)+n <= maxComposed {
		return nil
	}
	return c.finishRun()
}

// endUnsure has the sums of boards unknown that commands of this connection may have changed.
func (c *session) endUnsure() {
	if len(c.unsure) > 0 {
		c.server.logged.unsure(c.unsure)
		c.unsure = nil
	}
}

// appendCommandRest appends arguments of a command whose number was appended before.
func appendCommandRest(dst []byte, args ...string) []byte {
	for _, a := range args {
		dst = appendBulk(dst, a)
	}
	return dst
}
