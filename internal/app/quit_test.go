package app

import (
	"net/http"
	"testing"
	"time"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

// TestQuit: whoever has the admin token ends the sidecar as SIGTERM does, and nobody else.
func TestQuit(t *testing.T) {
	t.Parallel()
	c := startListening(t, "serve", "--redis", "redis://"+testkit.Redis(t), "--kafka", testkit.Kafka(t), "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--health", "127.0.0.1:0", "--drain", "10ms", "--admin-token", "hush")
	quit := func(method, token string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, c.URL("admin", "/quit"), nil)
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(req)
		must(t, err)
		res.Body.Close()
		return res.StatusCode
	}
	if a, b := quit(http.MethodPost, "other"), quit(http.MethodGet, "hush"); a != http.StatusUnauthorized || b != http.StatusMethodNotAllowed {
		t.Fatalf("another token %d, GET %d", a, b)
	}
	if status := quit(http.MethodPost, "hush"); status != http.StatusAccepted {
		t.Fatalf("answered %d", status)
	}
	if code := c.Wait(time.Minute); code != cli.ExitOK {
		t.Errorf("ended with %d", code)
	}
}
