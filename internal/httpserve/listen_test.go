package httpserve

import (
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
)

// TestListenSocket: a dead socket is replaced, a live one and a plain file are
// not.
func TestListenSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false) // as after SIGKILL
	dead.Close()
	live, err := Listen("unix:"+path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("dead socket: %v", err)
	}
	defer live.Close()
	if ln, err := Listen("unix:"+path, slog.New(slog.DiscardHandler)); err == nil {
		ln.Close()
		t.Error("a socket in use was taken over")
	}
	if _, err := Listen("127.0.0.1:99999", slog.New(slog.DiscardHandler)); err == nil || errors.Is(err, net.ErrClosed) {
		t.Errorf("bad port: %v", err)
	}
}
