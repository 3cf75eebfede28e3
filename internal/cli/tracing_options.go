package cli

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel"
	"golang.org/x/time/rate"

	"rankcache/internal/tracing"
)

// TracingOptions configures where spans of calls to Redis go; without an endpoint OpenTelemetry's variables do.
type TracingOptions struct {
	endpoint string
	headers  *Secret
	ratio    float64
}

func (o *TracingOptions) Register(flags *pflag.FlagSet) {
	flags.StringVar(&o.endpoint, "otlp-endpoint", "", "`URL` of an OTLP/HTTP collector, such as http://127.0.0.1:4318, that is sent a span of each call to Redis; empty: the value of OTEL_EXPORTER_OTLP_ENDPOINT, or no traces")
	flags.StringSlice("otlp-header", nil, "`headers` sent to the collector, as key=value")
	o.headers = SecretFile(flags, "otlp-header", "one a line, read again when it changes")
	flags.Float64Var(&o.ratio, "otlp-ratio", tracing.DefaultRatio, "`share` of the calls, 0 to 1, that are traced")
}

// Tracer returns the tracer, nil if no collector is set; w watches its authorities. With --otlp-endpoint
// OTEL_EXPORTER_OTLP_… is not read: its headers may be the secrets of another collector.
func (o *TracingOptions) Tracer(w *Options) (*tracing.Tracer, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	to := tracing.Env{Endpoint: o.endpoint}
	if o.endpoint == "" {
		var err error
		if to, err = tracing.FromEnv(os.Getenv); err != nil || to.Endpoint == "" {
			return nil, err
		}
	}
	if _, err := o.header(to.Headers); err != nil {
		return nil, err
	}
	headers := func() map[string]string {
		current, _ := o.header(to.Headers) // a line that is none is left out
		return current
	}
	roots, err := w.authorities("OTEL_EXPORTER_OTLP_CERTIFICATE", to.CAFile)
	if err != nil {
		return nil, err
	}
	return tracing.New(to.Endpoint, o.ratio, Version, tracing.WithTimeout(to.Timeout), tracing.WithCA(roots), tracing.WithHeaders(headers))
}

// check returns an error unless the ratio is a share, also while no collector is set.
func (o *TracingOptions) check() error {
	if !(o.ratio >= 0 && o.ratio <= 1) {
		return Usagef("--otlp-ratio %v: want 0 to 1", o.ratio)
	}
	return nil
}

// header returns base and the headers of --otlp-header, whose file may have changed.
func (o *TracingOptions) header(base map[string]string) (headers map[string]string, err error) {
	headers = map[string]string{}
	maps.Copy(headers, base)
	for _, line := range o.headers.Lines() {
		name, value, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			err = errors.New("--otlp-header: want key=value") // not the line: it may be a secret
			continue
		}
		headers[name] = strings.TrimSpace(value)
	}
	return headers, err
}

// NewTracer returns the tracer, nil without a collector. A bad variable, perhaps the app's, is no reason not to start.
func (o *TracingOptions) NewTracer(w *Options, log *slog.Logger) (*tracing.Tracer, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	tracer, err := o.Tracer(w)
	switch {
	case err != nil && o.endpoint == "":
		log.Warn("no traces are sent: check the variables OTEL_EXPORTER_OTLP_… or set --otlp-endpoint", "err", err)
		return nil, nil
	case err != nil:
		return nil, Usagef("--otlp-endpoint: %w", err)
	case tracer == nil:
		return nil, nil
	}
	lost := &rate.Sometimes{Interval: traceErrorsEvery}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { // OpenTelemetry has one for the process
		lost.Do(func() { log.Warn("traces are lost: check --otlp-endpoint and the collector", "err", err) })
	}))
	return tracer, nil
}

const traceErrorsEvery = time.Minute // keeps a collector that is away from filling the log
