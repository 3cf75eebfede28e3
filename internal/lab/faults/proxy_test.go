package faults

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

// echo is a server that sends each line back behind its name.
func echo(t *testing.T, name string) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					fmt.Fprintf(conn, "%s %s\n", name, lines.Text())
				}
			}()
		}
	}()
	return ln.Addr().String()
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func exchange(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	fmt.Fprintln(conn, "hello")
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	got, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || got != want+" hello\n" {
		t.Fatalf("got %q %v, want %s", got, err, want)
	}
}

func TestProxy(t *testing.T) {
	testkit.NoLeaks(t)
	p, err := NewProxy(echo(t, "first"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	conn := dial(t, p)
	exchange(t, conn, "first")

	p.Cut()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && err == nil {
		t.Error("a connection outlived the cut")
	}
	if _, err := net.Dial("tcp", p.Addr()); err == nil {
		t.Error("a cut proxy accepts")
	}
	if err := p.Restore(); err != nil {
		t.Fatal(err)
	}
	conn = dial(t, p)
	exchange(t, conn, "first")

	p.Stall()
	fmt.Fprintln(conn, "hello")
	conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("something came through a stalled proxy: %v", err)
	}
	if err := p.Restore(); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "first hello\n" {
		t.Errorf("what was held back came as %q %v", line, err)
	}

	p.Delay(20 * time.Millisecond)
	start := time.Now()
	if exchange(t, conn, "first"); time.Since(start) < 40*time.Millisecond {
		t.Error("an answer came without the delay of both ways")
	}
	p.Redirect(echo(t, "second"))
	exchange(t, dial(t, p), "second")
}
