package demo

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/cli"
	"rankcache/internal/lab/compare"
	"rankcache/origin"
	"rankcache/wire"
)

// TestWhatCantBeReadIsNoDifference: neither a Redis nor a sidecar that does not answer is told as one that differs.
func TestWhatCantBeReadIsNoDifference(t *testing.T) {
	d := &demoRun{stdout: io.Discard}
	away := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialTimeout: time.Second})
	defer away.Close()
	sidecar := httptest.NewServer(http.NotFoundHandler())
	defer sidecar.Close()
	_, err := compare.Board(t.Context(), http.DefaultClient, sidecar.URL, "b", origin.New(away, wire.DefaultNames()), 1)
	if err = d.judge(0, 1, err); err == nil || cli.ExitCode(err) != cli.ExitFailed {
		t.Errorf("exit code %d: %v", cli.ExitCode(err), err)
	}
	if err := d.judge(1, 1, fmt.Errorf("%w: %w", compare.ErrDiffers, errors.New("rank 1"))); cli.ExitCode(err) != cli.ExitDiffers {
		t.Errorf("a difference: %v", err)
	}
}
