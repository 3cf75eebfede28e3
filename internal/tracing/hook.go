package tracing

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// hook makes a span of each round trip of a Redis client.
type hook struct{ tracer trace.Tracer }

// Hook returns what a Redis client is given with AddHook.
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

// span makes a span around call. An error's own text may quote a key.
func (h hook) span(ctx context.Context, what string, commands int, call func(context.Context) error) error {
	ctx, span := h.tracer.Start(ctx, "redis "+what, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("db.system.name", "redis"), attribute.String("db.operation.name", what), attribute.Int("db.operation.batch.size", commands)))
	defer span.End()
	err := call(ctx)
	var answer redis.Error
	switch {
	case err == nil || errors.Is(err, redis.Nil):
	case errors.As(err, &answer):
		span.SetStatus(codes.Error, "redis answered an error")
	default:
		span.SetStatus(codes.Error, "redis did not answer")
	}
	return err
}
