package bench

import (
	"context"
	"time"

	"rankcache/internal/lab/load"
)

// spinEvery is how often the process works for nothing, and for at most as long.
const spinEvery = 5 * time.Millisecond

// keepBusy has this process take a number of cores, what it does anyway included, until ctx is
// done. Beside a sidecar without streams that stands for the streams' clients: else the core
// beside the sidecar's is idler than with streams, and what else runs on the machine runs there
// instead of on the sidecar's.
func keepBusy(ctx context.Context, cores float64) {
	began, before := time.Now(), load.OwnCPU()
	tick := time.NewTicker(spinEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		owed := time.Duration(cores*float64(time.Since(began))) - (load.OwnCPU() - before)
		for end := time.Now().Add(min(owed, spinEvery)); time.Now().Before(end); {
			continue
		}
	}
}
