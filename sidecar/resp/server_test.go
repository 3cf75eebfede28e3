package resp

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rankcache/internal/testkit"
	"rankcache/internal/testkit/fixture"
	"rankcache/sidecar"
	"rankcache/wire"
)

// served is a listener without Redis, whose connections are counted and can be slow.
type served struct {
	*Server
	net.Listener
	writes atomic.Int64
	stop   context.CancelFunc
	ended  chan error
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

func (s *served) Accept() (net.Conn, error) {
	nc, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countedConn{nc, &s.writes}, nil
}

func serveAlone(t *testing.T, cfg Config) *served {
	t.Helper()
	env := fixture.New()
	reader, err := sidecar.NewReader(sidecar.Config{Tiers: fixture.Tiers(fixture.Rooms), Hot: env.Hot, Origin: env.Origin,
		Boards: fixture.Boards[sidecar.Board]{"local": env.Local}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Names = wire.DefaultNames()
	if cfg.Dial == nil {
		cfg.Dial = func(context.Context) (net.Conn, error) { return nil, errors.New("no Redis") }
	}
	s := &served{Listener: testkit.Listen(t, "tcp"), ended: make(chan error, 1)}
	if s.Server, err = New(reader, cfg, slog.New(slog.DiscardHandler), nil); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(t.Context())
	go func() { s.ended <- s.Serve(ctx, s) }()
	t.Cleanup(s.stop)
	return s
}

// TestPipelineIsOneWrite: n reads that are answered here are sent by one write.
func TestPipelineIsOneWrite(t *testing.T) {
	s := serveAlone(t, Config{})
	c := dial(t, s.Addr().String())
	c.send(strings.Repeat("*4\r\n$9\r\nZREVRANGE\r\n$5\r\nlocal\r\n$1\r\n0\r\n$1\r\n9\r\nZCARD local\r\n", 16))
	c.replies(32)
	if n := s.writes.Load(); n != 1 {
		t.Errorf("%d writes for one pipeline", n)
	}
}

func TestCap(t *testing.T) {
	s := serveAlone(t, Config{MaxConns: 3})
	silent, idle, busy := dial(t, s.Addr().String()), dial(t, s.Addr().String()), dial(t, s.Addr().String())
	for _, c := range []*clientConn{idle, busy} {
		c.want(":57000\r\n", "ZCARD", "local")
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		if n, _ := s.Conns(); n != 3 {
			return errors.New("not all connections are there")
		}
		return nil
	})
	busy.want(":57000\r\n", "ZCARD", "local")
	dial(t, s.Addr().String()).want(":57000\r\n", "ZCARD", "local")
	if rest := silent.rest(); rest != "" {
		t.Errorf("%q", rest)
	}
	idle.want(":57000\r\n", "ZCARD", "local")
}

// TestSlowClients are cut off: those that send a command slowly, and those that do not
// read.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	s := serveAlone(t, Config{ReadTimeout: 300 * time.Millisecond, WriteTimeout: 300 * time.Millisecond})
	idle := dial(t, s.Addr().String())
	c := dial(t, s.Addr().String())
	c.send("ZCARD local\r\n*2\r\n$5\r\nZCA")
	if rest := c.rest(); rest != ":57000\r\n" {
		t.Errorf("%q", rest)
	}
	c = dial(t, s.Addr().String())
	go func() {
		for range 1000 {
			if _, err := c.Write([]byte("ZRANGE local 0 9999\r\n")); err != nil {
				return
			}
		}
	}()
	testkit.Eventually(t, 20*time.Second, func() error {
		if n, _ := s.Conns(); n != 1 {
			return errors.New("a client that reads nothing stays")
		}
		return nil
	})
	idle.want(":57000\r\n", "ZCARD", "local")
}

// TestDrain: commands that have come are answered, in order and once, before the
// connection ends.
func TestDrain(t *testing.T) {
	s := serveAlone(t, Config{})
	idle, c := dial(t, s.Addr().String()), dial(t, s.Addr().String())
	idle.want(":57000\r\n", "ZCARD", "local")
	const one = "*2\r\n$5\r\nZCARD\r\n$5\r\nlocal\r\n"
	c.send(strings.Repeat(one, 20_000))
	c.readFull(make([]byte, len(":57000\r\n")))
	s.stop()
	if rest := c.rest(); strings.ReplaceAll(rest, ":57000\r\n", "") != "" {
		t.Errorf("replies are cut: ends %q", rest[max(0, len(rest)-20):])
	}
	if rest := idle.rest(); rest != "" {
		t.Errorf("%q", rest)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// TestDrainWithoutReader: a Redis that reads nothing does not hold up the end for as long as
// writes may take.
func TestDrainWithoutReader(t *testing.T) {
	t.Parallel()
	hung := testkit.Listen(t, "tcp")
	defer hung.Close()
	s := serveAlone(t, Config{Dial: dialer(hung.Addr().String()), DrainTimeout: 100 * time.Millisecond, WriteTimeout: time.Hour})
	c := dial(t, s.Addr().String())
	c.send(string(appendCommand(nil, "SET", "k", strings.Repeat("v", 20<<20))))
	testkit.Eventually(t, 5*time.Second, func() error {
		if s.Status().Upstreams == 0 {
			return errors.New("nothing is passed on")
		}
		return nil
	})
	s.stop()
	select {
	case err := <-s.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}
