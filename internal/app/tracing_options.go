package app

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel"

	"rankcache/internal/tracing"
)

// tracingOptions say where spans of calls to Redis go.
type tracingOptions struct {
	endpoint string
	ratio    float64
}

func (o *tracingOptions) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.endpoint, "otlp-endpoint", "", "`URL` of an OTLP/HTTP collector, such as http://127.0.0.1:4318, that is sent a span of each call to Redis; empty: no traces")
	flags.Float64Var(&o.ratio, "otlp-ratio", tracing.DefaultRatio, "`share` of the calls, 0 to 1, that are traced")
}

// newTracer returns what sends spans, nil if no collector is set.
func (o *tracingOptions) newTracer(log *slog.Logger) (*tracing.Tracer, error) {
	if o.endpoint == "" {
		return nil, nil
	}
	tracer, err := tracing.New(o.endpoint, o.ratio, Version)
	if err != nil {
		return nil, Usagef("--otlp-endpoint, --otlp-ratio: %w", err)
	}
	otel.SetErrorHandler(&traceErrors{log: log}) // the library has one for the process
	return tracer, nil
}

// traceErrorsEvery keeps a collector that is away from filling the log.
const traceErrorsEvery = time.Minute

// traceErrors logs that traces can't be sent, once in a while.
type traceErrors struct {
	log  *slog.Logger
	last atomic.Int64 // Unix time in ns of the last line
}

// Handle is called by OpenTelemetry.
func (e *traceErrors) Handle(err error) {
	now, last := time.Now().UnixNano(), e.last.Load()
	if now-last > int64(traceErrorsEvery) && e.last.CompareAndSwap(last, now) {
		e.log.Warn("traces are lost: check --otlp-endpoint and the collector", "err", err)
	}
}
