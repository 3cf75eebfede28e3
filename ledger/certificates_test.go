package ledger

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// TestPostgresCertificatesRotate: the files in the URL are read again for each connection; one that is half written leaves
// what was there.
func TestPostgresCertificatesRotate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	cert, key := selfSigned(t)
	certFile, keyFile, roots := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "roots.pem")
	must(t, os.WriteFile(certFile, cert, 0o644))
	must(t, os.WriteFile(keyFile, key, 0o600))
	must(t, servers.GiveToSQL(keyFile))
	server := testkit.StartSQL(t, "postgres", servers.SQLOptions{Args: []string{"-c", "ssl=on", "-c", "ssl_cert_file=" + certFile, "-c", "ssl_key_file=" + keyFile}})
	other, _ := selfSigned(t)
	must(t, os.WriteFile(roots, other, 0o600))
	u, err := url.Parse(server.URL("postgres"))
	must(t, err)
	q := u.Query()
	q.Set("sslmode", "verify-full")
	q.Set("sslrootcert", roots)
	u.RawQuery = q.Encode()
	files := CertificateFiles("database", u.String())
	db, err := OpenSQL(u.String(), nil, files...)
	must(t, err)
	defer db.Close()
	db.SetMaxIdleConns(0) // each use is a connection
	ask := func() error { return db.PingContext(t.Context()) }
	if err := ask(); err == nil || !strings.Contains(err.Error(), "authority") {
		t.Fatalf("the server's certificate came first: %v", err)
	}
	must(t, os.WriteFile(roots, append(bytes.Clone(other), cert...), 0o600))
	testkit.Eventually(t, 10*time.Second, ask)
	must(t, os.WriteFile(roots, append(bytes.Clone(other), cert[:len(cert)/2]...), 0o600))
	must(t, ask())
	if s := files[0].Status(); s.Error == "" || s.Ends == nil {
		t.Errorf("a half written file is told as %+v", s)
	}
}

// selfSigned returns a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}
