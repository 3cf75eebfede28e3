package origin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"golang.org/x/time/rate"

	"rankcache/internal/watch"
)

// Defaults of a client.
const (
	DefaultTimeout = 200 * time.Millisecond // bounds one round trip
	// dialAttempts per connection: go-redis's default of five costs 0.4 s of a request on a refused connection.
	dialAttempts = 1
	// protocol 2 and no CLIENT SETINFO work with every server, also with those that lack HELLO and CLIENT.
	protocol = 2
)

// Modes of a Redis deployment.
const (
	ModeSingle    = "single"
	ModeCluster   = "cluster"
	ModeSentinel  = "sentinel"
	ModeInstances = "instances" // several servers that know nothing of each other
)

// Options tell [Dial] how to reach Redis.
type Options struct {
	// URL is redis://user:password@host:port/db, rediss:// for TLS, or unix:///path. Its query takes go-redis's options
	// for the mode, such as pool_size=40, addr=host2:6379 (cluster and sentinel nodes, the other instances),
	// master_name=m (sentinel), skip_verify=true (single and sentinel).
	URL  string
	Mode string // single (also ""), cluster, sentinel or instances
	// Role is master (also ""), replica, which is for mode single: the server may then be either, or read, which is for
	// [Replicas], in all modes: that uses replicas. The replicas of a cluster are those that it names.
	Role string
	// NotePlace has each instance that has no place among the others yet note the one that it has by the addresses.
	NotePlace bool
	// Username and Password, if set, override the URL's, which keeps secrets out of addresses.
	Username, Password string
	// Credentials, if set, returns the user and password of each new connection, in place
	// of Username, Password and the URL's. It may be called concurrently.
	Credentials func() (username, password string)
	// CAFile has the PEM certificates for rediss:// servers, read again when it changes. Empty: the system's.
	CAFile string
	// RootCAs, if set, returns them for each new connection, in place of CAFile. It may be called concurrently.
	RootCAs func() *x509.CertPool
	// Timeout is the default for reads, writes and dials where the URL sets none. 0: DefaultTimeout.
	Timeout time.Duration
}

// readFromReplicas is why options are refused.
const readFromReplicas = "read from replicas, whose lag looks like lost writes and closes boards: remove them"

// Dial returns a client, without connecting; the caller closes it. It uses no replica ([ErrNotMaster]) and refuses
// options that would. Its errors never contain the URL, which may hold a password.
func Dial(opts Options) (redis.UniversalClient, error) {
	if err := checkURL(opts.URL); err != nil {
		return nil, err
	}
	switch single := opts.Mode == "" || opts.Mode == ModeSingle; {
	case opts.Role == "" || opts.Role == RoleMaster || opts.Role == RoleRead:
	case single && opts.Role == RoleReplica:
	default:
		return nil, fmt.Errorf("redis role %q in mode %q: want %s, or %s in mode %s: what several servers have is not of one time", opts.Role, opts.Mode, RoleMaster, RoleReplica, ModeSingle)
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
	case ModeInstances:
		return opts.instances()
	}
	return nil, fmt.Errorf("redis mode %q: want %s, %s, %s or %s", opts.Mode, ModeSingle, ModeCluster, ModeSentinel, ModeInstances)
}

// checkURL rejects ambiguous URLs: what follows a bare "#", "/" or "?" in a password would get into error texts.
func checkURL(raw string) error {
	u, err := url.Parse(raw)
	if err == nil && strings.Contains(u.Host, ",") {
		return errors.New("redis url names several addresses with commas: want one, and each other one as addr=host:port in the query, in mode cluster, sentinel or instances")
	}
	if err != nil || u.Fragment != "" || strings.Contains(u.Path+u.RawQuery, "@") {
		return errors.New("redis url is not valid: want redis://user:password@host:port/db, with special characters of the password percent-encoded")
	}
	return nil
}

func (opts Options) single() (redis.UniversalClient, error) {
	o, err := redis.ParseURL(opts.URL)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	o.DialerRetries = dialAttempts
	if o.OnConnect = rarely(onlyMaster); opts.Role == RoleReplica || opts.Role == RoleRead {
		o.OnConnect = rarely(masterOrReplica)
	}
	o.CredentialsProvider = opts.Credentials
	o.DisableIdentity, o.ContextTimeoutEnabled = true, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opts.common(&o.Protocol, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.Username, &o.Password)
	if err := opts.setCA(o.TLSConfig, o.DialTimeout, &o.Dialer); err != nil {
		return nil, err
	}
	client := redis.NewClient(o)
	client.AddHook(newBudgetHook(opts.Timeout))
	return client, nil
}

func (opts Options) cluster() (redis.UniversalClient, error) {
	o, err := opts.clusterOptions("cluster")
	if err != nil {
		return nil, err
	}
	if opts.Role == RoleRead {
		o.ReadOnly, o.ShardPicker = true, anyReplica{}
	}
	client := redis.NewClusterClient(o)
	reloadOnErrors(client)
	opts.budgets(client)
	return client, nil
}

// clusterOptions returns those of a client of several servers.
func (opts Options) clusterOptions(mode string) (*redis.ClusterOptions, error) {
	o, err := redis.ParseClusterURL(opts.URL)
	if err != nil {
		return nil, fmt.Errorf("redis %s url: %w", mode, err)
	}
	if o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
		return nil, fmt.Errorf("redis %s url: read_only, route_by_latency and route_randomly %s", mode, readFromReplicas)
	}
	setDefault(&o.DialerRetries, dialAttempts)
	o.CredentialsProvider = opts.Credentials
	o.DisableIdentity, o.ContextTimeoutEnabled = true, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opts.common(&o.Protocol, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.Username, &o.Password)
	if err := opts.setCA(o.TLSConfig, o.DialTimeout, &o.Dialer); err != nil {
		return nil, err
	}
	return o, nil
}

func (opts Options) sentinel() (redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(opts.URL)
	if err != nil {
		return nil, fmt.Errorf("redis sentinel url: %w", err)
	}
	if o.MasterName == "" {
		return nil, errors.New("redis sentinel url: add ?master_name=<name of the monitored master>")
	}
	if o.ReplicaOnly || o.UseDisconnectedReplicas || o.RouteByLatency || o.RouteRandomly {
		return nil, fmt.Errorf("redis sentinel url: replica_only, use_disconnected_replicas, route_by_latency and route_randomly %s", readFromReplicas)
	}
	setDefault(&o.DialerRetries, dialAttempts)
	if o.ReplicaOnly = opts.Role == RoleRead; !o.ReplicaOnly {
		o.OnConnect = onlyMasterOrSentinel
	}
	o.CredentialsProvider = opts.Credentials
	o.DisableIdentity, o.ContextTimeoutEnabled = true, true
	opts.common(&o.Protocol, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.Username, &o.Password)
	if err := opts.setCA(o.TLSConfig, o.DialTimeout, &o.Dialer); err != nil {
		return nil, err
	}
	client := redis.NewFailoverClient(o)
	if !o.ReplicaOnly {
		askAllSentinels(client, o)
	}
	client.AddHook(newBudgetHook(opts.Timeout))
	return client, nil
}

// common sets options of all three modes that the URL leaves unset.
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

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error) // how go-redis connects

const keepAlive = 5 * time.Minute // go-redis's own

// setCA makes a TLS client verify servers against the authorities as they are at each dial.
func (opts Options) setCA(conf *tls.Config, timeout time.Duration, dial *dialer) error {
	roots := opts.RootCAs
	switch {
	case roots == nil && opts.CAFile == "":
		return nil
	case conf == nil:
		return errors.New("redis ca file is set but the url is not rediss://")
	case roots == nil:
		file := watch.Certificates("redis-ca", opts.CAFile)
		if err := file.Load(); err != nil {
			return fmt.Errorf("redis ca file: %w", err)
		}
		roots = watch.RootsOf(file)
	}
	*dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		now := conf.Clone()
		now.RootCAs = roots()
		d := tls.Dialer{NetDialer: &net.Dialer{Timeout: timeout, KeepAlive: keepAlive}, Config: now}
		return d.DialContext(ctx, network, addr)
	}
	return nil
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// logEvery is the least time between lines of go-redis, which writes thousands a second while Redis is away.
const logEvery = time.Second

// LogTo makes the process's go-redis write to log, a line a second at most. Only main calls it.
func LogTo(log *slog.Logger) {
	redis.SetLogger(&redisLog{log: log, limit: rate.Sometimes{Interval: logEvery}})
}

// redisLog is go-redis's logger; its method may be called concurrently.
type redisLog struct {
	log   *slog.Logger
	limit rate.Sometimes
}

func (l *redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.limit.Do(func() { l.log.WarnContext(ctx, fmt.Sprintf(format, v...), "of", "redis client") })
}
