package resp

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	"rankcache/sidecar"
	"rankcache/wire"
)

// echoUpstream returns the address of a server that answers each command with its last
// argument.
func echoUpstream(t testing.TB) string {
	ln := testkit.Listen(t, "tcp")
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go echoLast(conn)
		}
	}()
	return ln.Addr().String()
}

func echoLast(there net.Conn) {
	defer there.Close()
	var a parser
	var in []byte
	room := make([]byte, 4096)
	for {
		n, err := there.Read(room)
		if err != nil {
			return
		}
		in = append(in, room[:n]...)
		var out []byte
		for {
			cmd, n, err := a.next(in)
			if n == 0 || err != nil {
				break
			}
			out = appendBulk(out, cmd.args[len(cmd.args)-1])
			in = append([]byte(nil), in[n:]...)
		}
		if _, err := there.Write(out); err != nil {
			return
		}
	}
}

// FuzzOrder: local and passed commands, in pieces of any lengths, get their replies in order.
// Each byte is a command: its kind, and after how many of its bytes the next piece begins.
func FuzzOrder(f *testing.F) {
	env := fixture.New()
	reader, err := sidecar.NewReader(sidecar.Config{Tiers: fixture.Tiers(fixture.Rooms), Hot: env.Hot, Origin: env.Origin,
		Boards: fixture.Boards[sidecar.Board]{"local": env.Local}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	s, err := New(reader, Config{Names: wire.DefaultNames(), Dial: dialer(echoUpstream(f))}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		f.Fatal(err)
	}
	s.noteTry()
	s.facts.Store(&facts{flags: map[string]flags{"GET": {readonly: true}, "GETRANGE": {readonly: true}}})
	ln := testkit.Listen(f, "tcp")
	ctx, cancel := context.WithCancel(context.Background())
	f.Cleanup(cancel)
	go func() { _ = s.Serve(ctx, ln) }()
	f.Add([]byte{0, 1, 2, 3, 0x24, 0x81, 0xff, 0, 1})
	f.Fuzz(func(t *testing.T, commands []byte) {
		c := dial(t, ln.Addr().String())
		defer c.Close()
		var out, want strings.Builder
		for i, b := range commands[:min(len(commands), 300)] {
			var one string
			switch b % 4 {
			case 0:
				one = "*2\r\n$5\r\nZCARD\r\n$5\r\nlocal\r\n"
				want.WriteString(":57000\r\n")
			case 1:
				one = string(appendCommand(nil, "GET", fmt.Sprint(i)))
				want.Write(appendBulk(nil, fmt.Sprint(i)))
			case 2:
				one = fmt.Sprintf("PING %d\r\n", i)
				want.Write(appendBulk(nil, fmt.Sprint(i)))
			case 3:
				one = fmt.Sprintf("GETRANGE k 0 %d\r\n", i)
				want.Write(appendBulk(nil, fmt.Sprint(i)))
			}
			cut := int(b/4) % (len(one) + 1)
			out.WriteString(one[:cut])
			if b >= 0x80 {
				c.send(out.String())
				out.Reset()
			}
			out.WriteString(one[cut:])
		}
		c.send(out.String() + "QUIT\r\n")
		want.WriteString("+OK\r\n")
		if got := c.rest(); got != want.String() {
			at := differ(got, want.String())
			t.Errorf("%d bytes, want %d; from byte %d got\n%.300q\nwant\n%.300q", len(got), want.Len(), at, got[at:], want.String()[at:])
		}
	})
}
