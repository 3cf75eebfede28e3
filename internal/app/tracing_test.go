package app

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

func TestServeSendsTraces(t *testing.T) {
	checkTraces(t, "/v1/traces k=flag", func(collector string) []string {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1") // of another program
		t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-test=hush")
		return []string{"--otlp-endpoint", collector, "--otlp-header", "X-Test=k=flag"}
	})
}

func TestServeSendsTracesWhereThePodsVariablesSay(t *testing.T) {
	checkTraces(t, "/pod/v1/traces k=env", func(collector string) []string {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector+"/pod")
		t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-test=k%3Denv")
		return nil
	})
}

// A caller's trace is continued: with a ratio of 0 only its own requests are traced.
func TestServeContinuesATrace(t *testing.T) {
	const id = "0af7651916cd43dd8448eb211c80319c"
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	came := make(chan []byte, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Encoding") == "gzip" {
			r.Body, _ = gzip.NewReader(r.Body)
		}
		body, _ := io.ReadAll(r.Body)
		came <- body
	}))
	defer collector.Close()
	s := startListening(t, "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0", "--kafka", "127.0.0.1:1",
		"--redis", "redis://"+testkit.Redis(t), "--redis-timeout", "2s", "--otlp-endpoint", collector.URL, "--otlp-ratio", "0")
	s.Get("data", "/v1/boards/"+testkit.Name(t)+"/top") // not traced
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL("data", "/v1/boards/"+testkit.Name(t)+"/top"), nil)
	req.Header.Set("Traceparent", "00-"+id+"-b7ad6b7169203331-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	want, _ := hex.DecodeString(id)
	select {
	case spans := <-came:
		if !bytes.Contains(spans, want) {
			t.Errorf("the spans are not of the caller's trace: %q", spans)
		}
	case <-time.After(time.Minute):
		t.Error("no trace came")
	}
}

// A pod's variables may be for an app that speaks gRPC.
func TestServeStartsWithoutTracesWhereItCannotSend(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	c := startListening(t, "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0", "--kafka", "127.0.0.1:1", "--redis", "redis://127.0.0.1:1")
	if !strings.Contains(c.Log(), "OTEL_EXPORTER_OTLP_PROTOCOL") {
		t.Error("the log does not name the variable that prevents traces")
	}
}

// checkTraces starts a sidecar with what settings returns for a collector, and wants a
// trace at its path with its header X-Test.
func checkTraces(t *testing.T, want string, settings func(collector string) []string) {
	t.Helper()
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50") // ms; OpenTelemetry's own is 5 s
	came := make(chan string, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case came <- r.URL.Path + " " + r.Header.Get("X-Test"):
		default:
		}
	}))
	defer collector.Close()
	args := append(settings(collector.URL), "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0", "--kafka", "127.0.0.1:1",
		"--redis", "redis://"+testkit.Redis(t), "--redis-timeout", "2s", "--otlp-ratio", "1")
	s := startListening(t, append([]string{"serve"}, args...)...)
	s.Get("data", "/v1/boards/"+testkit.Name(t)+"/top")
	select {
	case got := <-came:
		if got != want {
			t.Errorf("the collector got %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		t.Error("no trace came")
	}
}

// A share beyond 1 ends the process, also without a collector, and whoever has set the collector.
func TestRatioOutOfRange(t *testing.T) {
	for name, endpoint := range map[string]string{"no collector": "", "OpenTelemetry's variable": "http://127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
			c := startChild(t, "serve", "--otlp-ratio", "2", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0")
			if code := c.Wait(20 * time.Second); code != cli.ExitUsage || !strings.Contains(c.Log(), "--otlp-ratio 2: want 0 to 1") {
				t.Errorf("ended with %d: %s", code, c.Log())
			}
		})
	}
}
