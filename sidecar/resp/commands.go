package resp

import (
	"slices"
	"strings"
)

type kind uint8 // what the listener does with a command

const (
	kindPass      kind = iota // passed on
	kindRead                  // answered here, if the board is and the form is known
	kindHandshake             // answered here, and repeated to the upstream when that opens
	kindRelay                 // passed on, and so is all that comes after it
	kindMulti                 // a transaction begins: all is passed on until it ends
	kindWatch
	kindEnd // of a transaction
	kindUnwatch
	kindScript // passed on; may write to any board
)

type verb uint8 // a command by its place in [commands]

// The commands that are distinguished. The first ones are answered here.
const (
	verbOther verb = iota
	zRevRange
	zRange
	zRevRangeByScore
	zRangeByScore
	zRevRank
	zRank
	zScore
	zMScore
	zCard
	zCount
	hello
	auth
	selectDB
	ping
	echo
	client
	quit
	multi
	exec
	discard
	watch
	unwatch
	relayed
	script
	verbs
)

// commands are the commands that are distinguished, each with its verb and what becomes of it.
var commands = map[string]struct {
	verb verb
	kind kind
}{
	"ZREVRANGE": {zRevRange, kindRead}, "ZRANGE": {zRange, kindRead},
	"ZREVRANGEBYSCORE": {zRevRangeByScore, kindRead}, "ZRANGEBYSCORE": {zRangeByScore, kindRead},
	"ZREVRANK": {zRevRank, kindRead}, "ZRANK": {zRank, kindRead},
	"ZSCORE": {zScore, kindRead}, "ZMSCORE": {zMScore, kindRead}, "ZCARD": {zCard, kindRead}, "ZCOUNT": {zCount, kindRead},

	"HELLO": {hello, kindHandshake}, "AUTH": {auth, kindHandshake}, "SELECT": {selectDB, kindHandshake}, "PING": {ping, kindHandshake},
	"ECHO": {echo, kindHandshake}, "CLIENT": {client, kindHandshake}, "QUIT": {quit, kindHandshake},

	"MULTI": {multi, kindMulti}, "WATCH": {watch, kindWatch}, "EXEC": {exec, kindEnd}, "DISCARD": {discard, kindEnd}, "UNWATCH": {unwatch, kindUnwatch},

	"SUBSCRIBE": {relayed, kindRelay}, "PSUBSCRIBE": {relayed, kindRelay}, "SSUBSCRIBE": {relayed, kindRelay},
	"UNSUBSCRIBE": {relayed, kindRelay}, "PUNSUBSCRIBE": {relayed, kindRelay}, "SUNSUBSCRIBE": {relayed, kindRelay},
	"MONITOR": {relayed, kindRelay}, "READONLY": {relayed, kindRelay}, "READWRITE": {relayed, kindRelay}, "ASKING": {relayed, kindRelay},
	"RESET": {relayed, kindRelay}, "SYNC": {relayed, kindRelay}, "PSYNC": {relayed, kindRelay}, "REPLCONF": {relayed, kindRelay},

	"EVAL": {script, kindScript}, "EVALSHA": {script, kindScript}, "FCALL": {script, kindScript},
}

// names are the verbs as metrics have them.
var names = func() (all [verbs]string) {
	all[verbOther] = "other"
	for name, c := range commands {
		all[c.verb] = lower(name)
	}
	all[relayed], all[script] = "relay", "script"
	return all
}()

// verbOf returns what the command of that name is.
func verbOf(name []byte) (verb, kind) {
	var room [24]byte
	if len(name) > len(room) {
		return verbOther, kindPass
	}
	c := commands[string(upper(room[:0], name))]
	return c.verb, c.kind
}

func upper(dst, s []byte) []byte {
	for _, c := range s {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// is reports whether the argument is the word, which is upper-case.
func is(arg []byte, word string) bool {
	if len(arg) != len(word) {
		return false
	}
	for i := range arg {
		if c := arg[i]; c != word[i] && (c < 'a' || c > 'z' || c-('a'-'A') != word[i]) {
			return false
		}
	}
	return true
}

// isHTTP reports whether the line is of an HTTP request, which a page in a browser can have it send here.
func isHTTP(cmd *command) bool {
	if cmd.raw[0] == '*' {
		return false
	}
	name, last := cmd.args[0], cmd.args[len(cmd.args)-1]
	return is(name, "POST") || is(name, "HOST:") || is(name, "GET") && len(last) > 5 && is(last[:5], "HTTP/")
}

// CommandInfo tells what becomes of one command, for docs/RESP.md.
type CommandInfo struct{ Name, What string }

// Commands returns what becomes of the commands that are distinguished, by name.
func Commands() []CommandInfo {
	var all []CommandInfo
	for name, c := range commands {
		what := kindTexts[c.kind]
		if c.verb == zRevRange || c.verb == zRange {
			what = "answered here: from open boards; pages by rank, best first, also from the kept top of a hot board"
		}
		all = append(all, CommandInfo{name, what})
	}
	slices.SortFunc(all, func(a, b CommandInfo) int { return strings.Compare(a.Name, b.Name) })
	return all
}

var kindTexts = map[kind]string{
	kindRead:      "answered here: from open boards",
	kindHandshake: "handshake: answered here, and repeated to Redis when the connection to it opens",
	kindRelay:     "passed on; the connection is relayed until it is closed",
	kindMulti:     "passed on, as is all until EXEC or DISCARD",
	kindWatch:     "passed on, as is all until EXEC, DISCARD or UNWATCH",
	kindEnd:       "passed on; ends a transaction",
	kindUnwatch:   "passed on; ends WATCH",
	kindScript:    "passed on; may write to any board, so that reads pass until the copies are newer",
}
