package tracing

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// fakeCollector takes spans as an OTLP collector does.
type fakeCollector struct {
	mu    sync.Mutex
	spans []*traces.Span
}

func (c *fakeCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	var req traces.TracesData // on the wire an ExportTraceServiceRequest
	if err := proto.Unmarshal(data, &req); err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "want spans on /v1/traces", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range req.ResourceSpans {
		for _, s := range r.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
}

func TestCallsOfRedisBecomeSpans(t *testing.T) {
	got := &fakeCollector{}
	server := httptest.NewServer(got)
	defer server.Close()
	tracer, err := New(server.URL, 1, "test")
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2, DisableIdentity: true})
	defer client.Close()
	client.AddHook(tracer.Hook())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- tracer.Run(ctx) }()
	key := testkit.Name(t)
	testkit.Eventually(t, 10*time.Second, func() error { // spans made before Run has begun are dropped
		client.ZCard(ctx, key)
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
	client.Get(ctx, key)                   // nil is no error
	client.Do(ctx, "NO-SUCH-COMMAND", key) // an error that quotes the key
	client.Pipelined(ctx, func(p redis.Pipeliner) error { p.ZScore(ctx, key, "m"); p.ZCard(ctx, key); return nil })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	status := map[string]string{}
	for _, s := range got.spans {
		status[s.Name] = s.Status.GetCode().String()
		if text := s.String(); strings.Contains(text, key) {
			t.Errorf("a span tells the key: %s", text)
		}
	}
	for name, want := range map[string]string{"redis get": "STATUS_CODE_UNSET", "redis no-such-command": "STATUS_CODE_ERROR", "redis pipeline": "STATUS_CODE_UNSET"} {
		if status[name] != want {
			t.Errorf("%s: got %q, want %q; spans %v", name, status[name], want, status)
		}
	}
}

func TestCallsSucceedWithoutCollector(t *testing.T) {
	tracer, err := New("http://127.0.0.1:1", 1, "test")
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2, DisableIdentity: true})
	defer client.Close()
	client.AddHook(tracer.Hook())
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tracer.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	for endpoint, ratio := range map[string]float64{"collector:4318": 1, "ftp://x": 1, "http://u:hush@x": 1, "http://x": 2, "http://y": -1} {
		if _, err := New(endpoint, ratio, ""); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s, %v: %v", endpoint, ratio, err)
		}
	}
}
