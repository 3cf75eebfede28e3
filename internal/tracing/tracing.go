// Package tracing sends a span of each call to Redis to an OpenTelemetry
// collector: hook.go makes the spans, this file collects them in batches, upload.go
// posts them. Spans say
// which command it was, how long it took and whether it failed; keys and values,
// which name people, stay here.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// DefaultRatio keeps the traces of a busy sidecar small.
	DefaultRatio = 0.01
	// sendTimeout bounds one batch, and the last one at the end.
	sendTimeout = 5 * time.Second
)

// Tracer makes spans and, while it runs, sends them. What is made before or
// after is dropped.
type Tracer struct {
	provider *sdk.TracerProvider
	exporter *otlptrace.Exporter
}

// New returns a tracer that sends a share of the spans, ratio from 0 to 1, to the
// OTLP/HTTP endpoint, such as http://127.0.0.1:4318. It connects to nothing.
func New(endpoint string, ratio float64, version string) (*Tracer, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("endpoint is not a URL such as http://127.0.0.1:4318")
	}
	if u.User != nil {
		return nil, errors.New("endpoint holds a password: put a collector without one beside the pod")
	}
	if !(ratio >= 0 && ratio <= 1) {
		return nil, fmt.Errorf("ratio %v: want 0 to 1", ratio)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	about := resource.NewSchemaless(attribute.String("service.name", "rankcache"), attribute.String("service.version", version))
	return &Tracer{
		provider: sdk.NewTracerProvider(sdk.WithSampler(sdk.TraceIDRatioBased(ratio)), sdk.WithResource(about)),
		exporter: otlptrace.NewUnstarted(upload{u.String(), &http.Client{Timeout: sendTimeout}}),
	}, nil
}

// Run sends spans until ctx is done, and then those that are left. A collector
// that is away is told to OpenTelemetry's error handler and never ends Run.
func (t *Tracer) Run(ctx context.Context) error {
	if err := t.exporter.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	t.provider.RegisterSpanProcessor(sdk.NewBatchSpanProcessor(t.exporter))
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	_ = t.provider.Shutdown(last) // spans lost at the end are no failure of the process
	return nil
}
