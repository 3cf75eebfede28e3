package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"rankcache/internal/roomsync"
	"rankcache/internal/tick"
)

// ReadRooms has a follower read the file, the rooms' sets in Redis, and what is set at run time.
func ReadRooms(ctx context.Context, follower *roomsync.Follower) error {
	if err := follower.Load(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = follower.Run(ctx) }() // ends with ctx, without an error
	defer func() { stop(); <-done }()
	for {
		status := follower.Status()
		if status.File.Resolved && !status.Dynamic.ReadAt.IsZero() {
			return nil
		}
		if !tick.Sleep(ctx, 5*time.Millisecond) {
			return fmt.Errorf("redis has not returned the boards of the rooms: %s", cmp.Or(status.Dynamic.Error, "no answer in time"))
		}
	}
}
