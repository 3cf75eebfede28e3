package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
)

// explainTLS has errors of TLS handshakes with Redis say what to check.
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

// tlsHook is the [redis.Hook] of explainTLS.
type tlsHook struct{}

// DialHook explains the errors of connecting.
func (tlsHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		return conn, explainHandshake(err)
	}
}

// explainHandshake adds to an error what to check. A plain Redis waits for the
// rest of what it takes for a command, so that the handshake runs out of time.
func explainHandshake(err error) error {
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

// ProcessHook changes nothing.
func (tlsHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook changes nothing.
func (tlsHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
