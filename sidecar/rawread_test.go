package sidecar

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// socketPair returns both ends of a connection.
func socketPair(t *testing.T, network string) (near, far net.Conn) {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	ln, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if far, err = net.Dial(network, ln.Addr().String()); err == nil {
		near, err = ln.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

func TestRawReader(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			near, far := socketPair(t, network)
			var r rawReader
			r.open(near)
			buf := make([]byte, 8)
			read := func(want string, wantWaited bool, wantErr func(error) bool) {
				t.Helper()
				n, waited, err := r.read(buf)
				if string(buf[:n]) != want || waited != wantWaited || !wantErr(err) {
					t.Errorf("read %q, waited %v, error %v; want %q, %v", buf[:n], waited, err, want, wantWaited)
				}
			}
			none := func(err error) bool { return err == nil }
			timedOut := func(err error) bool {
				timeout, ok := errors.AsType[net.Error](err)
				return ok && timeout.Timeout()
			}

			send(t, far, "here already")
			read("here alr", false, none)
			read("eady", false, none)
			whenEmpty(&r, func() { send(t, far, "late") })
			read("late", true, none)
			whenEmpty(&r, func() { near.SetReadDeadline(time.Now()) })
			read("", true, timedOut)
			read("", false, timedOut)
			near.SetReadDeadline(time.Time{})
			send(t, far, "end")
			far.Close()
			read("end", false, none)
			read("", false, func(err error) bool { return err == io.EOF })
		})
	}
}

// whenEmpty has do called when the next read finds nothing.
func whenEmpty(r *rawReader, do func()) {
	try := r.try
	r.try = func(fd uintptr) bool {
		come := try(fd)
		if !come {
			r.try = try
			do()
			do = func() {}
		}
		return come
	}
}

// Somebody else may close the connection, as who makes room does.
func TestRawReaderEndsWithItsConnection(t *testing.T) {
	near, _ := socketPair(t, "unix")
	var r rawReader
	r.open(near)
	time.AfterFunc(20*time.Millisecond, func() { near.Close() })
	if n, _, err := r.read(make([]byte, 8)); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("read %d bytes, %v; want %v", n, err, net.ErrClosed)
	}
	if n, _, err := r.read(make([]byte, 8)); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("read %d bytes after that, %v; want %v", n, err, net.ErrClosed)
	}
}

// bufio panics on a count below 0, which is what the system call returns.
func TestRawReaderOfResetConnection(t *testing.T) {
	near, far := socketPair(t, "tcp")
	var r rawReader
	r.open(near)
	far.(*net.TCPConn).SetLinger(0)
	time.AfterFunc(20*time.Millisecond, func() { far.Close() })
	if n, _, err := r.read(make([]byte, 8)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("read %d bytes, %v; want 0 and a reset", n, err)
	}
}

func send(t *testing.T, to net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Error(err)
	}
}
