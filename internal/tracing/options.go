package tracing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/propagation"
)

// Option changes how a [Tracer] sends spans.
type Option func(*http.Client) error

// WithHeaders adds headers, as they are then, to each upload. They are never logged, redirects not followed.
func WithHeaders(headers func() map[string]string) Option {
	return func(c *http.Client) error {
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		c.Transport = withHeaders{headers, c.Transport}
		return nil
	}
}

// WithTimeout bounds one upload; 0 leaves the default, 5 s.
func WithTimeout(d time.Duration) Option {
	return func(c *http.Client) error {
		if d > 0 {
			c.Timeout = d
		}
		return nil
	}
}

// WithCA trusts only these authorities of an https endpoint, asked at each dial; nil: the system's. Comes first.
func WithCA(roots func() *x509.CertPool) Option {
	return func(c *http.Client) error {
		if roots == nil {
			return nil
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			d := tls.Dialer{Config: &tls.Config{RootCAs: roots(), MinVersion: tls.VersionTLS12}}
			return d.DialContext(ctx, network, addr)
		}
		c.Transport = transport
		return nil
	}
}

type withHeaders struct {
	headers func() map[string]string
	next    http.RoundTripper // nil: the default
}

func (w withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // a RoundTripper must not change its request
	for name, value := range w.headers() {
		r.Header.Set(name, value)
	}
	if w.next == nil {
		return http.DefaultTransport.RoundTrip(r)
	}
	return w.next.RoundTrip(r)
}

// Continue returns a context whose spans belong to a request's trace, by W3C headers. A bad traceparent is ignored.
func Continue(ctx context.Context, traceparent, tracestate string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent, "tracestate": tracestate})
}
