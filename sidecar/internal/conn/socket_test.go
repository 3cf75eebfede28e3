//go:build linux && (amd64 || arm64)

package conn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"rankcache/internal/testkit/kit"
)

// socketPair returns both ends of a connection.
func socketPair(t *testing.T, network string) (near, far net.Conn) {
	t.Helper()
	ln := kit.Listen(t, network)
	defer ln.Close()
	var err error
	if far, err = net.Dial(network, ln.Addr().String()); err == nil {
		near, err = ln.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// onSockets runs a test on both kinds of connection.
func onSockets(t *testing.T, test func(t *testing.T, near, far net.Conn)) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			near, far := socketPair(t, network)
			test(t, near, far)
		})
	}
}

func TestSocketRead(t *testing.T) {
	onSockets(t, func(t *testing.T, near, far net.Conn) {
		var s socket
		s.open(near)
		buf := make([]byte, 8)
		read := func(want string, wantErr func(error) bool) {
			t.Helper()
			n, err := s.read(buf)
			if string(buf[:n]) != want || !wantErr(err) {
				t.Errorf("read %q, error %v; want %q", buf[:n], err, want)
			}
		}
		none := func(err error) bool { return err == nil }
		timedOut := func(err error) bool {
			timeout, ok := errors.AsType[net.Error](err)
			return ok && timeout.Timeout()
		}

		send(t, far, "here already")
		read("here alr", none)
		read("eady", none)
		whenBlocked(&s.in, func() { send(t, far, "late") })
		read("late", none)
		whenBlocked(&s.in, func() { near.SetReadDeadline(time.Now()) })
		read("", timedOut)
		read("", timedOut)
		near.SetReadDeadline(time.Time{})
		send(t, far, "end")
		far.Close()
		read("end", none)
		read("", func(err error) bool { return err == io.EOF })
	})
}

// whenBlocked has do called when the next try can't do anything.
func whenBlocked(in *transfer, do func()) {
	try := in.try
	in.try = func(fd uintptr) bool {
		done := try(fd)
		if !done {
			in.try = try
			do()
			do = func() {}
		}
		return done
	}
}

// Another goroutine may close the connection, to make room for new ones.
func TestSocketReadEndsWithItsConnection(t *testing.T) {
	near, _ := socketPair(t, "unix")
	var s socket
	s.open(near)
	whenBlocked(&s.in, func() { go near.Close() }) // it waits for the try
	if n, err := s.read(make([]byte, 8)); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("read %d bytes, %v; want %v", n, err, net.ErrClosed)
	}
	if n, err := s.read(make([]byte, 8)); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("read %d bytes after that, %v; want %v", n, err, net.ErrClosed)
	}
}

// bufio panics on a count below 0, which is what the system call returns.
func TestSocketReadOfResetConnection(t *testing.T) {
	near, far := socketPair(t, "tcp")
	var s socket
	s.open(near)
	far.(*net.TCPConn).SetLinger(0)
	whenBlocked(&s.in, func() { far.Close() })
	if n, err := s.read(make([]byte, 8)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("read %d bytes, %v; want 0 and a reset", n, err)
	}
}

// TestSocketWrite sends more than the socket has room for, to a peer that begins to
// read when it is full.
func TestSocketWrite(t *testing.T) {
	onSockets(t, func(t *testing.T, near, far net.Conn) {
		var s socket
		s.open(near)
		want := make([]byte, 32<<20+1)
		for i := range want {
			want[i] = byte(i >> 8)
		}
		got, blocked := make([]byte, len(want)), false
		var reading sync.WaitGroup
		whenBlocked(&s.out, func() {
			blocked = true
			reading.Go(func() {
				if _, err := io.ReadFull(far, got); err != nil {
					t.Error(err)
				}
			})
		})
		if n, err := s.write(want, nil); n != len(want) || err != nil {
			t.Errorf("wrote %d bytes of %d, %v", n, len(want), err)
		}
		reading.Wait()
		if !blocked || !bytes.Equal(got, want) {
			t.Errorf("the socket was full: %v, and the other end has the same: %v", blocked, bytes.Equal(got, want))
		}
		if n, err := s.write(nil, nil); n != 0 || err != nil {
			t.Errorf("wrote %d bytes of none, %v", n, err)
		}
	})
}

// TestSocketWriteOfTwo: the second piece comes behind the first, however much of them the
// socket takes at once.
func TestSocketWriteOfTwo(t *testing.T) {
	whole := make([]byte, 2<<20)
	for i := range whole {
		whole[i] = byte(i * 7 >> 3)
	}
	for _, first := range []int{0, 1, 300, maxAtOnce, maxAtOnce + 1, 1 << 20, len(whole)} {
		onSockets(t, func(t *testing.T, near, far net.Conn) {
			var s socket
			s.open(near)
			got := make([]byte, len(whole))
			var reading sync.WaitGroup
			reading.Go(func() {
				if _, err := io.ReadFull(far, got); err != nil {
					t.Error(err)
				}
			})
			n, err := s.write(whole[:first], whole[first:])
			near.Close() // or the reader waits for what was lost
			reading.Wait()
			if n != len(whole) || err != nil || !bytes.Equal(got, whole) {
				t.Errorf("with %d bytes in front: wrote %d of %d, %v, and the other end has the same: %v", first, n, len(whole), err, bytes.Equal(got, whole))
			}
		})
	}
}

// TestSocketWriteFails: to a peer that does not read until the deadline has passed, to
// one that has gone, and after Close.
func TestSocketWriteFails(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(near, far net.Conn)
		want   error
	}{
		"deadline": {func(near, _ net.Conn) { near.SetWriteDeadline(time.Now()) }, os.ErrDeadlineExceeded},
		"gone":     {func(_, far net.Conn) { far.Close() }, syscall.EPIPE},
		"closed":   {func(near, _ net.Conn) { go near.Close() }, net.ErrClosed}, // it waits for the try
	} {
		t.Run(name, func(t *testing.T) {
			near, far := socketPair(t, "unix")
			var s socket
			s.open(near)
			whenBlocked(&s.out, func() { c.breaks(near, far) })
			much := make([]byte, 32<<20)
			n, err := s.write(much, nil)
			if n == 0 || n == len(much) || !errors.Is(err, c.want) {
				t.Errorf("wrote %d bytes, %v; want some and %v", n, err, c.want)
			}
			if n, err := s.write(much[:1], nil); n != 0 || !errors.Is(err, c.want) {
				t.Errorf("then wrote %d bytes, %v; want 0 and %v", n, err, c.want)
			}
		})
	}
}

func send(t *testing.T, to net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Error(err)
	}
}
