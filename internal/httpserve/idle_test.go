package httpserve

import (
	"log/slog"
	"net/http"
	"testing"
	"time"
)

// A proxy keeps an idle connection for 60 s, and sends its next request on one that is closed here meanwhile: 502.
func TestIdleConnectionsOutliveThoseOfProxies(t *testing.T) {
	if idle := newServer(http.NotFoundHandler(), Config{HTTP2: true}, slog.New(slog.DiscardHandler)).IdleTimeout; idle < 75*time.Second {
		t.Errorf("idle connections are closed after %v", idle)
	}
}
