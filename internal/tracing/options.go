package tracing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/otel/propagation"
)

// Option changes how a [Tracer] sends spans.
type Option func(*http.Client) error

// WithHeaders adds headers to each upload, such as Authorization, as they are then. They are never logged,
// and redirects, which could lead to another host, are not followed.
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

// WithCA trusts only the authorities of a PEM file for an https endpoint; "" leaves
// those of the system. It comes before WithHeaders.
func WithCA(file string) Option {
	return func(c *http.Client) error {
		if file == "" {
			return nil
		}
		pem, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("certificates of the collector: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return fmt.Errorf("certificates of the collector: %s has none: want PEM", file)
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
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

// Continue returns a context whose spans belong to the trace of a request with these
// W3C headers, and are sampled if its caller's are. A traceparent that can't be parsed
// is ignored.
func Continue(ctx context.Context, traceparent, tracestate string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent, "tracestate": tracestate})
}
