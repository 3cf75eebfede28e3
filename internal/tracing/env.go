package tracing

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Env is the collector's configuration in OpenTelemetry's own environment variables. Zeros are not set.
type Env struct {
	Endpoint string
	Headers  map[string]string
	Timeout  time.Duration
	CAFile   string
}

// FromEnv reads OTEL_EXPORTER_OTLP_TRACES_… and else OTEL_EXPORTER_OTLP_…: ENDPOINT, HEADERS, TIMEOUT, CERTIFICATE. The
// error names the bad variable alone. The endpoint's scheme decides, not …_INSECURE.
func FromEnv(getenv func(string) string) (e Env, err error) {
	either := func(name string) (value, variable string) {
		for _, variable := range []string{"OTEL_EXPORTER_OTLP_TRACES_" + name, "OTEL_EXPORTER_OTLP_" + name} {
			if value := strings.TrimSpace(getenv(variable)); value != "" {
				return value, variable
			}
		}
		return "", ""
	}
	e.CAFile, _ = either("CERTIFICATE")
	headers, variable := either("HEADERS")
	if e.Headers, err = parseHeaders(headers); err != nil {
		return Env{}, fmt.Errorf("%s: %w", variable, err)
	}
	if text, variable := either("TIMEOUT"); text != "" {
		ms, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return Env{}, fmt.Errorf("%s: want milliseconds", variable)
		}
		e.Timeout = time.Duration(ms) * time.Millisecond
	}
	if e.Endpoint = endpointOf(either, getenv); e.Endpoint == "" {
		return e, nil
	}
	if protocol, variable := either("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return Env{}, fmt.Errorf("%s: only http/protobuf is supported: set --otlp-endpoint to an OTLP/HTTP port", variable)
	}
	return e, nil
}

// endpointOf returns the URL for traces, "" if there is none or traces are turned off.
func endpointOf(either func(string) (value, variable string), getenv func(string) string) string {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return ""
	}
	endpoint, variable := either("ENDPOINT")
	if variable == "OTEL_EXPORTER_OTLP_ENDPOINT" { // of all signals
		return strings.TrimSuffix(endpoint, "/") + "/v1/traces"
	}
	return endpoint
}

func parseHeaders(list string) (map[string]string, error) {
	headers := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return nil, fmt.Errorf("want key=value,key=value with percent-encoded values")
		}
		headers[name] = value
	}
	return headers, nil
}
