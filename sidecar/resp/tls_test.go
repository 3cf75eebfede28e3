package resp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// TestTLSUpstream: commands pass on over TLS, and an idle connection that Redis has closed, with
// or without saying so, is replaced.
func TestTLSUpstream(t *testing.T) {
	t.Parallel()
	r, dial := startTLSRedis(t)
	e := newEnv(t, r.Addr(), func(c *Config) { c.Dial = dial }).learned()
	e.fill(10, falling)
	c, other := e.dial(), e.dial()
	c.want("+OK\r\n", "SET", "k", "v")
	other.want("$1\r\nv\r\n", "GET", "k")
	time.Sleep(2 * idleUnchecked) // it is looked at
	c.want("$1\r\nv\r\n", "GET", "k")
	if err := e.client.ClientKillByFilter(t.Context(), "TYPE", "normal").Err(); err != nil { // Redis closes with close_notify
		t.Fatal(err)
	}
	time.Sleep(2 * idleUnchecked)
	c.want("$1\r\nv\r\n", "GET", "k")
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * idleUnchecked)
	other.want(awayReply(errAway), "GET", "k")
	other.want(":10\r\n", "ZCARD", "open")
}

// startTLSRedis starts a redis-server that also speaks TLS, and returns how to connect so.
func startTLSRedis(t *testing.T) (*servers.Redis, func(context.Context) (net.Conn, error)) {
	t.Helper()
	web := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1
	defer web.Close()
	own := web.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	addr, addrErr := servers.FreeAddr()
	if err != nil || addrErr != nil {
		t.Fatal(err, addrErr)
	}
	_, port, _ := net.SplitHostPort(addr)
	file := func(kind string, der []byte) string {
		name := filepath.Join(t.TempDir(), "file.pem")
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	cert := file("CERTIFICATE", own.Certificate[0])
	r := testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--tls-port", port, "--tls-cert-file", cert,
		"--tls-key-file", file("PRIVATE KEY", key), "--tls-ca-cert-file", cert, "--tls-auth-clients", "no"}})
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	d := tls.Dialer{Config: &tls.Config{RootCAs: roots}}
	return r, func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
}
