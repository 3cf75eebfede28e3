package app

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

func TestServeSendsTraces(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50") // ms; OpenTelemetry's own is 5 s
	came := make(chan string, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case came <- r.Method + " " + r.URL.Path:
		default:
		}
	}))
	defer collector.Close()
	s := startListening(t, "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0", "--kafka", "127.0.0.1:1",
		"--redis", "redis://"+testkit.Redis(t), "--redis-timeout", "2s", "--otlp-endpoint", collector.URL, "--otlp-ratio", "1")
	s.Get("data", "/v1/boards/"+testkit.Name(t)+"/top")
	select {
	case got := <-came:
		if got != "POST /v1/traces" {
			t.Errorf("the collector was asked %q", got)
		}
	case <-time.After(time.Minute):
		t.Error("no trace came")
	}
}
