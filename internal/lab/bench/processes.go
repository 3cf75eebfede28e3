package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// startRankcache runs this program again as the deployed one, until ctx is done, and returns its process id and what is
// closed when it has ended.
func startRankcache(ctx context.Context, args ...string) (pid int, ended <-chan struct{}, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{"bench", "rankcache"}, args...)...)
	cmd.Stderr = os.Stderr // written by another goroutine than the progress
	if err := cmd.Start(); err != nil {
		return 0, nil, fmt.Errorf("start rankcache %s: %w", args[0], err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // killed at the end
		close(done)
	}()
	return cmd.Process.Pid, done, nil
}

// metricOf returns the value of one series, named with its labels, of the process with a health port.
func metricOf(ctx context.Context, health, series string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("no %s among the metrics", series)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
