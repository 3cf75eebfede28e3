package cli

import (
	"context"
	"time"
)

// Sleep reports false if ctx ended it.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
