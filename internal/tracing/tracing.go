// Package tracing sends a span of each call to Redis to an OpenTelemetry collector. The entry function is [New]. The
// path of a span: the hook of a Redis client makes it, a sampler keeps a share of the traces, the SDK batches the
// spans, and upload posts a batch by OTLP over HTTP. A span has the command, its duration and whether it failed, but no
// keys and values, which identify people.
//
// Words: a span is one call; a trace is the spans of one request of the app, and is
// sampled as its root is; a collector receives spans.
package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	DefaultRatio = 0.01            // the share of traces that are sent, 0 to 1
	sendTimeout  = 5 * time.Second // bounds one upload, also the last one at shutdown
)

// Tracer makes spans and sends them while Run is running; other spans are dropped.
type Tracer struct {
	provider *sdk.TracerProvider
	exporter *otlptrace.Exporter
	upload   upload
}

// New returns a tracer that sends the share ratio of traces, 0 to 1, to an OTLP/HTTP endpoint. It opens nothing.
func New(endpoint string, ratio float64, version string, options ...Option) (*Tracer, error) {
	target, err := url.Parse(endpoint)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return nil, errors.New("endpoint is not a URL such as http://127.0.0.1:4318")
	}
	if target.User != nil {
		return nil, errors.New("endpoint contains a password, which is not supported: use a collector without one beside the pod")
	}
	if !(ratio >= 0 && ratio <= 1) {
		return nil, fmt.Errorf("ratio %v: want 0 to 1", ratio)
	}
	if strings.Trim(target.Path, "/") == "" {
		target.Path = "/v1/traces"
	}
	u := upload{target.String(), &http.Client{Timeout: sendTimeout}}
	for _, option := range options {
		if err := option(u.client); err != nil {
			return nil, err
		}
	}
	return &Tracer{
		provider: sdk.NewTracerProvider(sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(ratio))), sdk.WithResource(about(version))),
		exporter: otlptrace.NewUnstarted(u),
		upload:   u,
	}, nil
}

// about describes this process; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
func about(version string) *resource.Resource {
	own := resource.NewSchemaless(attribute.String("service.name", "rankcache"), attribute.String("service.version", version))
	if merged, err := resource.Merge(own, resource.Environment()); err == nil {
		return merged
	}
	return own
}

// Probe sends an empty batch, to check that the collector accepts one.
func (t *Tracer) Probe(ctx context.Context) error { return t.upload.UploadTraces(ctx, nil) }

// Run sends spans until ctx is done, then the rest. Errors go to OpenTelemetry's handler.
func (t *Tracer) Run(ctx context.Context) error {
	if err := t.exporter.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	t.provider.RegisterSpanProcessor(sdk.NewBatchSpanProcessor(t.exporter))
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	_ = t.provider.Shutdown(last) // losing spans at shutdown is no failure of the process
	return nil
}

type hook struct{ tracer trace.Tracer } // makes a span of each round trip of a Redis client

// Hook returns a hook for AddHook of a Redis client.
func (t *Tracer) Hook() redis.Hook { return hook{t.provider.Tracer("rankcache/redis")} }

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h.span(ctx, cmd.FullName(), 1, func(ctx context.Context) error { return next(ctx, cmd) })
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return h.span(ctx, "pipeline", len(cmds), func(ctx context.Context) error { return next(ctx, cmds) })
	}
}

// span makes a span around call. It leaves out error texts, which may contain keys.
func (h hook) span(ctx context.Context, what string, commands int, call func(context.Context) error) error {
	ctx, span := h.tracer.Start(ctx, "redis "+what, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("db.system.name", "redis"), attribute.String("db.operation.name", what), attribute.Int("db.operation.batch.size", commands)))
	defer span.End()
	err := call(ctx)
	var answer redis.Error
	switch {
	case err == nil || errors.Is(err, redis.Nil):
	case errors.As(err, &answer):
		span.SetStatus(codes.Error, "redis answered with an error")
	default:
		span.SetStatus(codes.Error, "redis did not answer")
	}
	return err
}

// upload is the OTLP client over HTTP. OpenTelemetry's own client links gRPC, 15 MB of binary that are not used here.
type upload struct {
	url    string
	client *http.Client
}

func (u upload) Start(context.Context) error { return nil }

func (u upload) Stop(context.Context) error {
	u.client.CloseIdleConnections()
	return nil
}

// UploadTraces posts one batch. TracesData has the same encoding as the collector's ExportTraceServiceRequest.
func (u upload) UploadTraces(ctx context.Context, batch []*spans.ResourceSpans) error {
	body, err := proto.Marshal(&spans.TracesData{ResourceSpans: batch})
	if err != nil {
		return fmt.Errorf("encode traces: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := u.client.Do(req)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // without the URL, which may contain a secret
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // a body read to its end allows reuse of the connection
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("collector answered %s", resp.Status)
	}
	return nil
}
