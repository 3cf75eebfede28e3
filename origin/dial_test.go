package origin

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

func TestDialErrorsHideSecrets(t *testing.T) {
	for _, o := range []Options{
		{URL: "redis://user:s3cret#x@host"},
		{URL: "redis://user:s3cret/x@host"},
		{URL: "redis://user:123/s3cret@host"},
		{URL: "redis://user:123#s3cret@host"},
		{URL: "redis://user:123?s3cret@host"},
		{URL: "redis://user:%s3cret@host"},
		{URL: "http://user:s3cret@host"},
		{URL: "redis://user:s3cret@host/notanumber"},
		{URL: "redis://user:s3cret@host?read_timeout=soon"},
		{URL: "redis://user:s3cret@host?unknown=1"},
		{URL: "redis://user:s3cret@host?unknown=1", Mode: ModeCluster},
		{URL: "redis://user:s3cret@host", Mode: ModeSentinel},
		{URL: "redis://host?master_name=m&password=s3cret&pool_size=x", Mode: ModeSentinel},
		{URL: "redis://host?master_name=m&password=s3cret&route_randomly=true", Mode: ModeSentinel},
		{URL: "redis://host?master_name=m&password=s3cret&replica_only=true", Mode: ModeSentinel},
		{URL: "redis://host?master_name=m&password=s3cret&use_disconnected_replicas=true", Mode: ModeSentinel},
		{URL: "redis://user:s3cret@host?read_only=true", Mode: ModeCluster},
		{URL: "redis://user:s3cret@host?route_randomly=true", Mode: ModeCluster},
		{URL: "redis://user:s3cret@host?route_by_latency=true", Mode: ModeCluster},
		{URL: "redis://user:s3cret@host", Mode: "many"},
		{URL: "redis://user:s3cret@host", CAFile: "/none"},
		{URL: "rediss://user:s3cret@host", CAFile: "/none"},
		{URL: ""},
	} {
		_, err := Dial(o)
		if err == nil {
			t.Errorf("%q %s was accepted", o.URL, o.Mode)
		} else if strings.Contains(err.Error(), "3cret") {
			t.Errorf("%q %s: secret in %q", o.URL, o.Mode, err)
		}
	}
}

func TestDialOptions(t *testing.T) {
	single := dialed(t, Options{URL: "redis://u:p@host:1/3?pool_size=7&read_timeout=2s", Timeout: time.Second, Password: "other"}).(*redis.Client).Options()
	equal(t, "single", []any{single.Addr, single.DB, single.Username, single.Password, single.PoolSize, single.ReadTimeout, single.DialTimeout, single.Protocol,
		single.DisableIdentity, single.ContextTimeoutEnabled, single.DialerRetries},
		[]any{"host:1", 3, "u", "other", 7, 2 * time.Second, time.Second, 2, true, true, 1})

	cluster := dialed(t, Options{Mode: ModeCluster, URL: "redis://host:1?addr=host2:2&dialer_retries=4"}).(*redis.ClusterClient).Options()
	equal(t, "cluster", []any{cluster.Addrs, cluster.ReadTimeout, cluster.Protocol, cluster.DisableIdentity, cluster.ContextTimeoutEnabled, cluster.DialerRetries},
		[]any{[]string{"host:1", "host2:2"}, DefaultTimeout, 2, true, true, 4})

	sentinel := dialed(t, Options{Mode: ModeSentinel, URL: "redis://host:1?master_name=m&addr=host2:2&username=u"}).(*redis.Client).Options()
	equal(t, "sentinel", []any{sentinel.Username, sentinel.ReadTimeout, sentinel.Protocol, sentinel.DisableIdentity, sentinel.ContextTimeoutEnabled, sentinel.DialerRetries},
		[]any{"u", DefaultTimeout, 2, true, true, 1})
}

func dialed(t *testing.T, o Options) redis.UniversalClient {
	t.Helper()
	client, err := Dial(o)
	must(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// A user with read access can use every method; a user without it gets Redis's
// error.
func TestAccessControl(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	admin := dialed(t, Options{URL: "redis://" + server.Addr(), Timeout: testTimeout})
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">p@ss", "~*", "-@all",
		"+@read", "+multi", "+exec", "+eval", "+evalsha", "+ping").Err())
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "denied", "on", ">p@ss", "~*", "-@all", "+multi", "+exec").Err())

	reader := dialed(t, Options{URL: "redis://reader@" + server.Addr(), Password: "p@ss", Timeout: testTimeout})
	for method, err := range everyMethod(t.Context(), New(reader, wire.DefaultNames(), WithTimeout(testTimeout)), "1_2_3") {
		if err != nil && method != "around" {
			t.Errorf("%s: %v", method, err)
		}
	}
	denied := dialed(t, Options{URL: "redis://denied:p%40ss@" + server.Addr(), Timeout: testTimeout})
	for method, err := range everyMethod(t.Context(), New(denied, wire.DefaultNames(), WithTimeout(testTimeout)), "1_2_3") {
		if err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("%s: %v", method, err)
		}
	}
	wrong := dialed(t, Options{URL: "redis://reader:wrong@" + server.Addr(), Timeout: testTimeout})
	err := rankcache.One(t.Context(), New(wrong, wire.DefaultNames(), WithTimeout(testTimeout)), rankcache.Query{Board: "1_2_3", Limit: 1}).Err
	if err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("wrong password: %v", err)
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := selfSigned(t, dir)
	free, err := servers.FreeAddr()
	must(t, err)
	_, port, _ := net.SplitHostPort(free)
	testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--tls-port", port, "--tls-cert-file", cert,
		"--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no"}})
	for _, c := range []struct {
		opts Options
		ok   bool
	}{
		{Options{URL: "rediss://127.0.0.1:" + port, CAFile: cert, Timeout: testTimeout}, true},
		{Options{URL: "rediss://127.0.0.1:" + port + "?skip_verify=true", Timeout: testTimeout}, true},
		{Options{URL: "rediss://127.0.0.1:" + port, Timeout: testTimeout}, false},
	} {
		o := New(dialed(t, c.opts), wire.DefaultNames(), WithTimeout(testTimeout))
		if err := rankcache.One(t.Context(), o, rankcache.Query{Board: "1_2_3", Limit: 1}).Err; (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.opts, err)
		}
	}
}

// TestAuthoritiesRotate: the file of authorities is read again for new connections, whether it or the server's
// certificate changes first; one that is half written leaves what was there.
func TestAuthoritiesRotate(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	cert, key := selfSigned(t, dir)
	wrong, _ := selfSigned(t, other)
	free, err := servers.FreeAddr()
	must(t, err)
	_, port, _ := net.SplitHostPort(free)
	testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--tls-port", port, "--tls-cert-file", cert,
		"--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no"}})
	right, err := os.ReadFile(cert)
	must(t, err)
	old, err := os.ReadFile(wrong)
	must(t, err)
	ca := filepath.Join(other, "ca.pem")
	must(t, os.WriteFile(ca, old, 0o600))
	client := dialed(t, Options{URL: "rediss://127.0.0.1:" + port + "?pool_size=1", CAFile: ca, Timeout: testTimeout})
	ask := func() error { return client.Ping(t.Context()).Err() }
	if err := ask(); err == nil || !strings.Contains(err.Error(), "authority") {
		t.Errorf("the server's certificate came first: %v", err)
	}
	must(t, os.WriteFile(ca, append(bytes.Clone(right), old...), 0o600))
	testkit.Eventually(t, 10*time.Second, ask)
	must(t, os.WriteFile(ca, right[:len(right)/2], 0o600))
	_ = client.Do(t.Context(), "quit").Err() // the next is a new connection
	testkit.Eventually(t, 10*time.Second, ask)
}

// selfSigned writes a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	return cert, key
}

func TestRedisLogIsLimited(t *testing.T) {
	var out bytes.Buffer
	l := &redisLog{slog.New(slog.NewTextHandler(&out, nil)), rate.Sometimes{Interval: logEvery}}
	for i := range 100 {
		l.Printf(t.Context(), "failed %d", i)
	}
	if got := out.String(); !strings.Contains(got, `msg="failed 0"`) || strings.Count(got, "\n") > 2 {
		t.Errorf("logged %q", got)
	}
}

// Several addresses in the way of other clients are refused, and not looked up as one name.
func TestDialRefusesAListOfAddresses(t *testing.T) {
	for _, mode := range []string{ModeSingle, ModeCluster, ModeSentinel, ModeInstances} {
		_, err := Dial(Options{URL: "redis://user:pass,word@a:1,b:2/0?master_name=m", Mode: mode})
		if err == nil || !strings.Contains(err.Error(), "addr=host:port") || strings.Contains(err.Error(), "word") {
			t.Errorf("%s: %v", mode, err)
		}
	}
	client, err := Dial(Options{URL: "redis://user:pass,word@a:1"})
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
}
