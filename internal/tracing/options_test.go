package tracing

import (
	"context"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"rankcache/internal/testkit"
)

// spansOf runs a tracer while ask makes spans, and returns what the collector got.
func spansOf(t *testing.T, tracer *Tracer, got *fakeCollector, ask func(ctx context.Context, command func(context.Context, string))) []*traces.Span {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := background(func() error { return tracer.Run(ctx) })
	h := hook{tracer.provider.Tracer("test")}
	command := func(ctx context.Context, name string) {
		_ = h.span(ctx, name, 1, func(context.Context) error { return nil })
	}
	testkit.Eventually(t, 10*time.Second, func() error { // spans made before Run has begun are dropped
		command(Continue(ctx, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", ""), "begin")
		if err := tracer.provider.ForceFlush(ctx); err != nil {
			return err
		}
		got.mu.Lock()
		defer got.mu.Unlock()
		if len(got.spans) == 0 {
			return errors.New("no span came")
		}
		return nil
	})
	ask(ctx, command)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return got.spans
}

func background(run func() error) chan error {
	done := make(chan error)
	go func() { done <- run() }()
	return done
}

// TestContinue: a caller's trace is continued, and the caller decides whether it is
// sampled.
func TestContinue(t *testing.T) {
	for name, c := range map[string]struct {
		ratio       float64
		traceparent string
		trace       string // "": no span is sent
	}{
		"sampled by the caller":     {0, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "4bf92f3577b34da6a3ce929d0e0e4736"},
		"not sampled by the caller": {1, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", ""},
		"not a traceparent":         {0, "00-4bf92f35-00f067aa0ba902b7-01", ""},
		"no caller":                 {0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := &fakeCollector{}
			server := httptest.NewServer(got)
			defer server.Close()
			tracer, err := New(server.URL, c.ratio, "test")
			if err != nil {
				t.Fatal(err)
			}
			spans := spansOf(t, tracer, got, func(ctx context.Context, command func(context.Context, string)) {
				command(Continue(ctx, c.traceparent, "vendor=1"), "asked")
			})
			var trace, parent string
			for _, s := range spans {
				if s.Name == "redis asked" {
					trace, parent = hex.EncodeToString(s.TraceId), hex.EncodeToString(s.ParentSpanId)
				}
			}
			if trace != c.trace || trace != "" && parent != "00f067aa0ba902b7" {
				t.Errorf("trace %q, parent %q; want trace %q", trace, parent, c.trace)
			}
		})
	}
}

func TestUploadHasHeadersAndTrustsTheCA(t *testing.T) {
	var authorization string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
	}))
	defer server.Close()
	pool := x509.NewCertPool()
	headers := WithHeaders(func() map[string]string { return map[string]string{"authorization": "Bearer hush"} })
	trusting, err := New(server.URL, 1, "test", WithCA(func() *x509.CertPool { return pool }), headers, WithTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if err := trusting.Probe(t.Context()); err == nil {
		t.Error("a certificate of an unknown authority is trusted")
	}
	pool.AddCert(server.Certificate()) // the file has changed
	if err := trusting.Probe(t.Context()); err != nil || authorization != "Bearer hush" {
		t.Errorf("%v, Authorization %q", err, authorization)
	}
	strange, err := New(server.URL, 1, "test", WithCA(nil), headers)
	if err != nil {
		t.Fatal(err)
	}
	if err := strange.Probe(t.Context()); err == nil {
		t.Error("a certificate of an unknown authority is trusted")
	}
}

func TestHeadersDoNotFollowARedirect(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	tracer, err := New(server.URL, 1, "test", WithHeaders(func() map[string]string { return map[string]string{"Authorization": "hush"} }))
	if err != nil {
		t.Fatal(err)
	}
	if err := tracer.Probe(t.Context()); err == nil || asked {
		t.Errorf("redirected: %v, %v", asked, err)
	}
}

func TestServiceNameAndAttributesOfTheEnvironment(t *testing.T) {
	t.Setenv("OTEL_SERVICE_NAME", "boards")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=lost,k8s.pod.name=a%201")
	got := map[string]string{}
	for _, kv := range about("v1").Attributes() {
		got[string(kv.Key)] = kv.Value.AsString()
	}
	want := map[string]string{"service.name": "boards", "service.version": "v1", "k8s.pod.name": "a 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFromEnv(t *testing.T) {
	const p = "OTEL_EXPORTER_OTLP_"
	none := map[string]string{}
	for name, c := range map[string]struct {
		env  map[string]string
		want Env
		bad  bool
	}{
		"nothing":           {none, Env{Headers: none}, false},
		"of all signals":    {map[string]string{p + "ENDPOINT": "http://c:4318/"}, Env{Endpoint: "http://c:4318/v1/traces", Headers: none}, false},
		"of traces":         {map[string]string{p + "ENDPOINT": "http://c:4318", p + "TRACES_ENDPOINT": "http://d/t"}, Env{Endpoint: "http://d/t", Headers: none}, false},
		"all of it":         {map[string]string{p + "HEADERS": "a=b%20c, d = e=f ", p + "TIMEOUT": "1500", p + "CERTIFICATE": "/ca"}, Env{Headers: map[string]string{"a": "b c", "d": "e=f"}, Timeout: 1500 * time.Millisecond, CAFile: "/ca"}, false},
		"traces turned off": {map[string]string{p + "ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, Env{Headers: none}, false},
		"SDK turned off":    {map[string]string{p + "ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "TRUE"}, Env{Headers: none}, false},
		"protocol":          {map[string]string{p + "ENDPOINT": "http://c:4318", p + "PROTOCOL": "http/protobuf"}, Env{Endpoint: "http://c:4318/v1/traces", Headers: none}, false},
		"gRPC":              {map[string]string{p + "ENDPOINT": "http://c:4317", p + "PROTOCOL": "grpc"}, Env{}, true},
		"gRPC, no endpoint": {map[string]string{p + "PROTOCOL": "grpc"}, Env{Headers: none}, false},
		"bad timeout":       {map[string]string{p + "TIMEOUT": "5s"}, Env{}, true},
		"bad header":        {map[string]string{p + "HEADERS": "hush"}, Env{}, true},
		"bad encoding":      {map[string]string{p + "HEADERS": "a=%zz"}, Env{}, true},
	} {
		got, err := FromEnv(func(name string) string { return c.env[name] })
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.bad {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}
