package httpserve

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

// failing is a listener whose first Accepts fail, as the kernel's do in a shortage.
type failing struct {
	net.Listener
	errs []error
}

func (l *failing) Accept() (net.Conn, error) {
	if len(l.errs) == 0 {
		return l.Listener.Accept()
	}
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
}

// TestShortagesPass: no failure to accept ends a server, and they are told.
func TestShortagesPass(t *testing.T) {
	var said strings.Builder
	log := slog.New(slog.NewTextHandler(&said, nil))
	of := &failing{testkit.Listen(t, "tcp"), []error{syscall.EMFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EPROTO, syscall.EPERM}}
	ln, _ := lasting(of, nil, log)
	done := make(chan error, 1)
	go func() { done <- Serve(t.Context(), ln, http.NotFoundHandler(), Config{}, log) }()
	answered := make(chan error, 1)
	go func() {
		res, err := http.Get("http://" + ln.Addr().String())
		if err == nil {
			res.Body.Close()
		}
		answered <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("a shortage ended the server: %v", err)
	case err := <-answered:
		if err != nil || len(of.errs) > 0 || strings.Count(said.String(), "can't accept") != 1 {
			t.Errorf("%v, %d failures not met, log %q", err, len(of.errs), said.String())
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestCloseEndsAPause: Accept of a closed listener ends, also between two tries.
func TestCloseEndsAPause(t *testing.T) {
	errs := make([]error, 1000)
	for i := range errs {
		errs[i] = syscall.EMFILE
	}
	ln, _ := lasting(&failing{testkit.Listen(t, "tcp"), errs}, nil, slog.New(slog.DiscardHandler))
	time.AfterFunc(20*time.Millisecond, func() { ln.Close() })
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
