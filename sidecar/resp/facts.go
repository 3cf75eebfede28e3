package resp

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"time"

	"rankcache/wire"
)

// facts are what was learned from the upstream: what it knows. They are never changed, only replaced.
type facts struct {
	rangeOptions bool              // ZRANGE takes BYSCORE, REV and LIMIT
	rankScore    bool              // ZRANK takes WITHSCORE
	multiScore   bool              // there is ZMSCORE
	scripts      bool              // the user may run scripts
	logs         bool              // the user may add to the log in Redis
	hello        [4][]byte         // the reply to HELLO 2 and 3, without the connection's id
	helloID      [4]int            // where the id stands in it
	name         string            // of the server, with its version
	flags        map[string]flags  // by name in capitals, those of subcommands as OBJECT|ENCODING
	unknown      map[string]string // the error that a subcommand of CLIENT gets
}

type flags struct{ readonly, blocking bool } // of one command, as COMMAND tells them

var unlearned = &facts{scripts: true} // holds for every server, and before the first was asked

const (
	noKey     = "rankcache:none" // no such key is there, so that asking for it costs nothing
	probeName = "RANKCACHE"
)

// optional are subcommands of CLIENT that libraries send on connecting, also to servers that don't know them.
var optional = []string{"SETINFO", "MAINT_NOTIFICATIONS"}

// learn asks the upstream, on a connection that is logged in and speaks RESP2. logged: writes are added to the log in Redis.
func learn(conn net.Conn, timeout time.Duration, logged bool) (*facts, error) {
	ask := [][]string{{"COMMAND"}, {"ZRANGE", noKey, "0", "0", "REV"}, {"ZRANK", noKey, "m", "WITHSCORE"},
		{"ZMSCORE", noKey, "m"}, {"HELLO", "3"}, {"HELLO", "2"}, {"EVAL", "return 0", "0"}}
	for _, sub := range optional {
		ask = append(ask, []string{"CLIENT", sub})
	}
	if logged {
		ask = append(ask, []string{"XADD", wire.LogKey, "NOMKSTREAM", "*", wire.LogBoard}) // a field without its value adds nothing
	}
	got, err := askAll(conn, timeout, ask)
	if err != nil {
		return nil, err
	}
	f := &facts{flags: flagsOf(got[0]), unknown: make(map[string]string)}
	f.rangeOptions, f.rankScore, f.multiScore = got[1][0] == '*', got[2][0] == '*', got[3][0] == '*'
	f.setHello(3, got[4])
	f.setHello(2, got[5])
	f.scripts = !bytes.HasPrefix(got[6], []byte("-NOPERM"))
	f.logs = logged && !bytes.HasPrefix(got[len(got)-1], []byte("-NOPERM"))
	for i, sub := range optional {
		if reply := string(got[7+i]); strings.Contains(strings.ToLower(reply), "unknown subcommand") {
			f.unknown[sub] = reply
		}
	}
	return f, nil
}

// setHello keeps the reply to HELLO, if it is one.
func (f *facts) setHello(proto int, reply []byte) {
	const field = "$2\r\nid\r\n:"
	at := bytes.Index(reply, []byte(field))
	if at < 0 {
		return
	}
	at += len(field)
	end := at + bytes.IndexByte(reply[at:], '\r')
	f.hello[proto], f.helloID[proto] = append(bytes.Clone(reply[:at]), reply[end:]...), at
	if words := texts(reply); len(words) > 3 {
		f.name = words[1] + " " + words[3]
	}
}

func (f *facts) appendHello(dst []byte, proto version, id uint64) []byte {
	at := f.helloID[proto]
	dst = append(dst, f.hello[proto][:at]...)
	dst = fmt.Append(dst, id)
	return append(dst, f.hello[proto][at:]...)
}

// flagsOf returns the flags of all commands in a reply to COMMAND.
func flagsOf(reply []byte) map[string]flags {
	all := make(map[string]flags)
	addFlags(all, decode(reply))
	return all
}

// addFlags adds the flags of commands, and those of their subcommands, which Redis tells from 7 on.
func addFlags(all map[string]flags, commands any) {
	list, _ := commands.([]any)
	for _, c := range list {
		fields, _ := c.([]any)
		if len(fields) < 3 {
			continue
		}
		name, _ := fields[0].(string)
		words, _ := fields[2].([]any)
		var f flags
		for _, w := range words {
			f.readonly = f.readonly || w == "readonly"
			f.blocking = f.blocking || w == "blocking"
		}
		all[strings.ToUpper(name)] = f
		if len(fields) > 9 {
			addFlags(all, fields[9])
		}
	}
}

// flagsOf returns the flags of a command, or of its subcommand; none of one that the upstream does not know.
func (f *facts) flagsOf(args [][]byte) flags {
	var room [64]byte
	if len(args[0]) > len(room)/2 {
		return flags{}
	}
	name := upper(room[:0], args[0])
	if len(args) > 1 && len(args[1]) < len(room)/2 {
		if sub, ok := f.flags[string(upper(append(name, '|'), args[1]))]; ok {
			return sub
		}
	}
	return f.flags[string(name)]
}

func texts(reply []byte) (all []string) {
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			all = append(all, v)
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(decode(reply))
	return all
}

// decode returns a reply that is complete: texts and numbers as string, aggregates as []any.
func decode(reply []byte) any {
	v, _ := decodeNext(reply)
	return v
}

func decodeNext(p []byte) (v any, rest []byte) {
	end := bytes.IndexByte(p, '\n')
	if end < 2 {
		return nil, nil
	}
	line, rest := p[1:end-1], p[end+1:]
	n, _ := parseInt(line)
	switch p[0] {
	case '$', '=', '!':
		if n < 0 || int(n)+2 > len(rest) {
			return nil, rest
		}
		return string(rest[:n]), rest[n+2:]
	case '%':
		n *= 2
		fallthrough
	case '*', '~', '>':
		var list []any
		for range n {
			if len(rest) == 0 {
				break
			}
			v, rest = decodeNext(rest)
			list = append(list, v)
		}
		return list, rest
	}
	return string(line), rest
}

// askAll sends commands at once and returns the replies.
func askAll(conn net.Conn, timeout time.Duration, commands [][]string) (got [][]byte, err error) {
	var all []byte
	for _, c := range commands {
		all = appendCommand(all, c...)
	}
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	if _, err := conn.Write(all); err != nil {
		return nil, fmt.Errorf("ask the upstream: %w", err)
	}
	buf, room := []byte(nil), make([]byte, 16<<10)
	awaited := replies{want: 1}
	for len(got) < len(commands) {
		n, err := conn.Read(room)
		if err != nil {
			return nil, fmt.Errorf("ask the upstream: %w", err)
		}
		for i, c := range room[:n] {
			if err := awaited.scan(room[i : i+1]); err != nil {
				return nil, err
			}
			if buf = append(buf, c); awaited.want == 0 {
				got, buf, awaited.want = append(got, buf), nil, 1
			}
		}
	}
	return got, conn.SetDeadline(time.Time{})
}
