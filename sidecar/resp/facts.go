package resp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// facts are what was learned from the upstream: how it writes scores, and what it knows.
// They are never changed, only replaced.
type facts struct {
	format       format
	rangeOptions bool      // ZRANGE takes BYSCORE, REV and LIMIT
	rankScore    bool      // ZRANK takes WITHSCORE
	multiScore   bool      // there is ZMSCORE
	hello        [4][]byte // the reply to HELLO 2 and 3, without the connection's id
	helloID      [4]int    // where the id stands in it
	name         string    // of the server, with its version
	flags        map[string]flags
	unknown      map[string]string // the error that a subcommand of CLIENT gets
}

// flags of one command, as COMMAND tells them.
type flags struct{ readonly, blocking bool }

// unlearned holds for every server, and before the first was asked.
var unlearned = &facts{}

const (
	noKey     = "rankcache:none" // no such key is there, so that asking for it costs nothing
	probeName = "RANKCACHE"
)

// optional are subcommands of CLIENT that client libraries send when they connect, also to
// servers that do not know them.
var optional = []string{"SETINFO", "MAINT_NOTIFICATIONS"}

// learn asks the upstream, on a connection that is logged in and speaks RESP2.
func learn(conn net.Conn, timeout time.Duration) (*facts, error) {
	ask := [][]string{{"COMMAND"}, {"EVAL", learnScores, "0"}, {"ZRANGE", noKey, "0", "0", "REV"}, {"ZRANK", noKey, "m", "WITHSCORE"},
		{"ZMSCORE", noKey, "m"}, {"HELLO", "3"}, {"HELLO", "2"}}
	for _, sub := range optional {
		ask = append(ask, []string{"CLIENT", sub})
	}
	got, err := askAll(conn, timeout, ask)
	if err != nil {
		return nil, err
	}
	f := &facts{flags: flagsOf(got[0]), unknown: make(map[string]string)}
	f.format = learnedFormat(texts(got[1]))
	f.rangeOptions, f.rankScore, f.multiScore = got[2][0] == '*', got[3][0] == '*', got[4][0] == '*'
	f.setHello(3, got[5])
	f.setHello(2, got[6])
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

// appendHello appends the reply to HELLO for a connection.
func (f *facts) appendHello(dst []byte, proto uint8, id uint64) []byte {
	at := f.helloID[proto]
	dst = append(dst, f.hello[proto][:at]...)
	dst = fmt.Append(dst, id)
	return append(dst, f.hello[proto][at:]...)
}

// flagsOf returns the flags of all commands in a reply to COMMAND.
func flagsOf(reply []byte) map[string]flags {
	all := make(map[string]flags)
	list, _ := decode(reply).([]any)
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
	}
	return all
}

// flagsOf returns the flags of a command; none of one that the upstream does not know.
func (f *facts) flagsOf(name []byte) flags {
	var room [64]byte
	if len(name) > len(room) {
		return flags{}
	}
	return f.flags[string(upper(room[:0], name))]
}

// texts returns the texts in a reply, one after the other.
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

// errRefused is an error that the upstream answered to what a connection begins with.
type errRefused string

func (e errRefused) Error() string { return "the upstream refused the connection: " + string(e) }

// follow keeps a connection of its own to the upstream, to learn from each server that is
// there, and to ask which keys a command has.
func (s *Server) follow(ctx context.Context) error {
	const pause, every = 200 * time.Millisecond, time.Second
	for ctx.Err() == nil {
		err := s.followOne(ctx, every)
		if err != nil && ctx.Err() == nil {
			s.lost(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// followOne learns from the server that is there, and asks whether it still is until it
// is not.
func (s *Server) followOne(ctx context.Context, every time.Duration) error {
	conn, err := s.dial(ctx, greeting{proto: 2, loggedIn: true, db: s.cfg.DB})
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	f, err := learn(conn, s.cfg.UpstreamTimeout+time.Second)
	if err != nil {
		return err
	}
	s.learned(f)
	if s.cfg.OneMaster {
		s.upstreams.closeBut(conn.RemoteAddr().String())
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case a := <-s.asks:
			got, err := askAll(conn, s.cfg.UpstreamTimeout, [][]string{a.command})
			if err == nil {
				a.reply <- got[0]
			} else {
				s.lost(err) // first, so that who is told so does not ask again
			}
			if close(a.reply); err != nil {
				return err
			}
		case <-time.After(every):
			if _, err := askAll(conn, s.cfg.UpstreamTimeout, [][]string{{"PING"}}); err != nil {
				return err
			}
		}
	}
}

// lost takes note that the upstream is away.
func (s *Server) lost(err error) {
	if !s.learnFailed.Swap(true) {
		s.log.Warn("RESP: Redis can't be reached: what is not open here gets errors", "err", err)
	}
}

func (s *Server) learned(f *facts) {
	s.facts.Store(f)
	s.learnFailed.Store(false)
	s.log.Info("RESP: learned from Redis", "server", f.name, "scores", f.format.String())
}

func (f format) String() string {
	return [...]string{"unknown: only integers are answered here", "%.17g", "shortest"}[f]
}

// ask is a command for the connection of follow.
type ask struct {
	command []string
	reply   chan []byte // closed without one if the upstream is away
}

var errAway = errors.New("the upstream is away")

// ask returns the upstream's reply.
func (s *Server) ask(command ...string) ([]byte, error) {
	if s.learnFailed.Load() {
		return nil, errAway
	}
	a := ask{command, make(chan []byte, 1)}
	limit := time.NewTimer(s.cfg.UpstreamTimeout)
	defer limit.Stop()
	select {
	case s.asks <- a:
	case <-limit.C:
		return nil, errAway
	}
	reply, ok := <-a.reply
	if !ok {
		return nil, errAway
	}
	return reply, nil
}
