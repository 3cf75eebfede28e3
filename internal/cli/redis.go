package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"rankcache/internal/doctor"
	"rankcache/origin"
)

// RedisOptions are the settings of how Redis is reached.
type RedisOptions struct {
	watched
	redis        *Secret
	RedisMode    string
	redisUser    string
	redisSecret  *Secret
	redisCA      string
	RedisTimeout time.Duration
	RedisRole    string // "" for a master ([origin.Options])
	NotePlace    bool   // set by a command that may write to all of Redis ([origin.Options])
	Log          string // where the log of changes is: LogKafka (also ""), LogRedis or, of a writer, LogBoth
}

// RegisterRedis registers how Redis is reached.
func (o *RedisOptions) RegisterRedis(flags *pflag.FlagSet) {
	o.redis = SecretVar(flags, "redis", "redis://127.0.0.1:6379", "Redis `URL`; rediss:// for TLS, user and password for ACL, go-redis options as query")
	ChoiceVar(flags, &o.RedisMode, "redis-mode", "", origin.ModeSingle, "what the URL names: single, cluster (addr=… in the query adds nodes), sentinel (master_name=…), or instances that know nothing of each other (each addr=… adds one, in an order that stays): boards are spread over them by their ids",
		origin.ModeSingle, origin.ModeCluster, origin.ModeSentinel, origin.ModeInstances)
	flags.StringVar(&o.redisUser, "redis-user", "", "ACL user `name`; wins over the URL's")
	o.redisSecret = SecretVar(flags, "redis-password", "", "password of Redis; wins over the URL's")
	flags.StringVar(&o.redisCA, "redis-ca", "", "PEM `file` of the authorities that a rediss:// server is checked against, read again when it changes; empty: those of the system")
	flags.DurationVar(&o.RedisTimeout, "redis-timeout", origin.DefaultTimeout, "deadline of one call to Redis")
}

// DialRedis returns a client that connects when it is first used.
func (o *RedisOptions) DialRedis() (redis.UniversalClient, error) {
	return o.dial("redis", o.redis, origin.Options{Mode: o.RedisMode, Role: o.RedisRole, NotePlace: o.NotePlace})
}

const ofCluster = "replicas" // the value of a flag of replicas that are read where Redis is a cluster, which names them

// DialRead returns a client of replicas: a URL of one, of Sentinels, of one for each instance; or the word replicas.
func (o *RedisOptions) DialRead(flag string, at *Secret) (redis.UniversalClient, error) {
	to := origin.Options{Mode: origin.ModeSingle, Role: origin.RoleRead}
	if u, err := url.Parse(at.Get()); err == nil && u.Query().Has("master_name") {
		to.Mode = origin.ModeSentinel
	}
	switch several := o.RedisMode == origin.ModeCluster; {
	case o.RedisRole == origin.RoleReplica:
		return nil, Usagef("--%s can't be used with --redis-role replica: all is read from a replica there", flag)
	case several != (at.Get() == ofCluster):
		return nil, Usagef("--%s: want the word %s with --redis-mode cluster, which names its replicas, else the URL of one", flag, ofCluster)
	case several:
		flag, at, to.Mode = "redis", o.redis, o.RedisMode
	case o.RedisMode == origin.ModeInstances:
		if to.Mode = o.RedisMode; o.instances(at) != o.instances(o.redis) {
			return nil, Usagef("--%s names %d replicas, and --redis %d instances: want one of each, in the same order", flag, o.instances(at), o.instances(o.redis))
		}
	}
	return o.dial(flag, at, to)
}

// instances returns how many servers a URL names.
func (o *RedisOptions) instances(at *Secret) int {
	u, err := url.Parse(at.Get())
	if err != nil {
		return 0 // dial tells
	}
	return 1 + len(u.Query()["addr"])
}

func (o *RedisOptions) dial(flag string, at *Secret, to origin.Options) (redis.UniversalClient, error) {
	if u, err := url.Parse(at.Get()); err == nil && u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix" {
		return nil, Usagef("--%s is not a URL of Redis: want redis://redis:6379, rediss://user:password@redis:6379/0 for TLS, or unix:///run/redis.sock", flag)
	}
	to.URL, to.Timeout = at.Get(), o.RedisTimeout
	to.Credentials = func() (user, password string) { return o.credentials(at) }
	var err error
	if to.RootCAs, err = o.authorities("--redis-ca", o.redisCA); err != nil {
		return nil, Usagef("redis ca file: %w", err)
	}
	client, err := origin.Dial(to)
	if err != nil {
		return nil, Usagef("--%s: %w", flag, err)
	}
	explainTLS(client)
	return client, nil
}

// CheckReplica logs once what Redis is, which may be a replica. It never fails.
func CheckReplica(ctx context.Context, client redis.UniversalClient, log *slog.Logger) error {
	if is, err := origin.CheckReplica(ctx, client); err == nil {
		log.Info("Redis is read only, with its lag", "redis", is)
	}
	return nil
}

// CheckRole logs once if Redis is a replica or does not tell. It never fails: a master may answer there later.
func CheckRole(ctx context.Context, client redis.UniversalClient, log *slog.Logger) error {
	known, err := origin.CheckMaster(ctx, client)
	switch {
	case errors.Is(err, origin.ErrNotMaster):
		log.Error("Redis is not used until it is a master", "err", err)
	case err == nil && !known:
		log.Warn("it is unknown whether Redis is a master (ROLE is refused): check by hand, because the lag of a replica looks like lost writes")
	}
	if err := client.Info(ctx, "server").Err(); redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "unknown command") {
		log.Warn("Redis refuses INFO: "+doctor.WithoutInfo, "err", err)
	}
	return nil
}

// Credentials returns the user and password of a new connection to Redis.
func (o *RedisOptions) Credentials() (user, password string) { return o.credentials(o.redis) }

func (o *RedisOptions) credentials(at *Secret) (user, password string) {
	if u, err := url.Parse(at.Get()); err == nil {
		user = u.User.Username()
		password, _ = u.User.Password()
	}
	return cmp.Or(o.redisUser, user), cmp.Or(o.redisSecret.Get(), password)
}

// explainTLS adds to errors of TLS handshakes with Redis what to check.
func explainTLS(client redis.UniversalClient) {
	switch c := client.(type) {
	case *redis.ClusterClient: // its nodes dial
		if c.Options().TLSConfig != nil {
			c.OnNewNode(func(node *redis.Client) { node.AddHook(tlsHook{}) })
		}
	case *redis.Client:
		if c.Options().TLSConfig != nil {
			c.AddHook(tlsHook{})
		}
	}
}

type tlsHook struct{}

// DialHook explains the errors of connecting.
func (tlsHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		return conn, ExplainHandshake(err)
	}
}

// ExplainHandshake adds to an error what to check: a plain Redis waits for more, until the handshake runs out of time.
func ExplainHandshake(err error) error {
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var dial *net.OpError // of the connection below
	switch {
	case errors.As(err, &record):
		return fmt.Errorf("the server does not speak TLS, use redis:// instead of rediss://: %w", err)
	case errors.As(err, &authority):
		return fmt.Errorf("the server's certificate is of an unknown authority, check --redis-ca: %w", err)
	case errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &dial):
		return fmt.Errorf("the server does not answer the TLS handshake, use redis:// instead of rediss:// if it does not speak TLS: %w", err)
	}
	return err
}

func (tlsHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (tlsHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
