package origin

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Defaults of a client.
const (
	// DefaultTimeout bounds one round trip.
	DefaultTimeout = 200 * time.Millisecond
	// dialAttempts per connection: the caller has somebody waiting, and the
	// library's five attempts cost 0.4 s on a refused connection.
	dialAttempts = 1
	// protocol 2 and no CLIENT SETINFO suit every server, also those that know
	// neither HELLO nor CLIENT.
	protocol = 2
)

// Modes of a Redis deployment.
const (
	ModeSingle   = "single"
	ModeCluster  = "cluster"
	ModeSentinel = "sentinel"
)

// Options say how Redis is reached.
type Options struct {
	// URL is redis://user:password@host:port/db, rediss:// for TLS, or
	// unix:///path. Its query takes go-redis's options of the mode, such as
	// pool_size=40, addr=host2:6379 (cluster and sentinel nodes),
	// master_name=m (sentinel), skip_verify=true (single and sentinel).
	URL string
	// Mode is single (also ""), cluster or sentinel.
	Mode string
	// Username and Password win over the URL's when set, so that a secret need
	// not be part of an address.
	Username, Password string
	// Credentials, if set, returns what each new connection logs in with, in place
	// of Username, Password and the URL's. It may be called concurrently.
	Credentials func() (username, password string)
	// CAFile holds the PEM certificates that a rediss:// server is checked
	// against. Empty: those of the system.
	CAFile string
	// Timeout is the default for reading, writing and dialling where the URL
	// sets none. 0: DefaultTimeout.
	Timeout time.Duration
}

// Dial returns a client for the options. It connects to nothing yet; the caller
// closes it. Its errors never show the URL, which may hold a password.
func Dial(opts Options) (redis.UniversalClient, error) {
	if err := checkURL(opts.URL); err != nil {
		return nil, err
	}
	if opts.Timeout == 0 {
		opts.Timeout = DefaultTimeout
	}
	switch opts.Mode {
	case "", ModeSingle:
		return opts.single()
	case ModeCluster:
		return opts.cluster()
	case ModeSentinel:
		return opts.sentinel()
	}
	return nil, fmt.Errorf("redis mode %q: want %s, %s or %s", opts.Mode, ModeSingle, ModeCluster, ModeSentinel)
}

// checkURL refuses what would be misread: a password with a bare "#", "/" or
// "?" ends up in other parts of the URL, and from there in error texts.
func checkURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Fragment != "" || strings.Contains(u.Path+u.RawQuery, "@") {
		return errors.New("redis url can't be read: want redis://user:password@host:port/db, with special characters of the password percent-encoded")
	}
	return nil
}

func (opts Options) single() (redis.UniversalClient, error) {
	o, err := redis.ParseURL(opts.URL)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	o.DialerRetries = dialAttempts
	o.CredentialsProvider = opts.Credentials
	o.DisableIdentity, o.ContextTimeoutEnabled = true, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opts.common(&o.Protocol, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.Username, &o.Password)
	if err := opts.trust(o.TLSConfig); err != nil {
		return nil, err
	}
	return redis.NewClient(o), nil
}

func (opts Options) cluster() (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(opts.URL)
	if err != nil {
		return nil, fmt.Errorf("redis cluster url: %w", err)
	}
	setDefault(&o.DialerRetries, dialAttempts)
	o.CredentialsProvider = opts.Credentials
	o.DisableIdentity, o.ContextTimeoutEnabled = true, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opts.common(&o.Protocol, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.Username, &o.Password)
	if err := opts.trust(o.TLSConfig); err != nil {
		return nil, err
	}
	return redis.NewClusterClient(o), nil
}

func (opts Options) sentinel() (redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(opts.URL)
	if err != nil {
		return nil, fmt.Errorf("redis sentinel url: %w", err)
	}
	if o.MasterName == "" {
		return nil, errors.New("redis sentinel url: add ?master_name=<name of the monitored master>")
	}
	if o.RouteByLatency || o.RouteRandomly {
		return nil, errors.New("redis sentinel url: route_by_latency and route_randomly read from replicas, which lag behind: remove them")
	}
	setDefault(&o.DialerRetries, dialAttempts)
	o.CredentialsProvider = opts.Credentials
	o.DisableIdentity, o.ContextTimeoutEnabled = true, true
	opts.common(&o.Protocol, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.Username, &o.Password)
	if err := opts.trust(o.TLSConfig); err != nil {
		return nil, err
	}
	return redis.NewFailoverClient(o), nil
}

// common fills what the three kinds of options have in common and the URL left
// unsaid.
func (opts Options) common(proto *int, dial, read, write, pool *time.Duration, username, password *string) {
	setDefault(proto, protocol)
	for _, d := range []*time.Duration{dial, read, write, pool} {
		setDefault(d, opts.Timeout)
	}
	if opts.Username != "" {
		*username = opts.Username
	}
	if opts.Password != "" {
		*password = opts.Password
	}
}

// trust makes a TLS client check servers against CAFile.
func (opts Options) trust(conf *tls.Config) error {
	if opts.CAFile == "" {
		return nil
	}
	if conf == nil {
		return errors.New("redis ca file is set but the url is not rediss://")
	}
	pem, err := os.ReadFile(opts.CAFile)
	if err != nil {
		return fmt.Errorf("redis ca file: %w", err)
	}
	conf.RootCAs = x509.NewCertPool()
	if !conf.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("redis ca file %s: no PEM certificate in it", opts.CAFile)
	}
	return nil
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
