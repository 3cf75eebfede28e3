package bench

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// loopTarget is the floor under every server here: one loop that reads what has come
// and writes the same bytes, without parsing the request. What it costs is the
// kernel's part; no server that reads and writes can be cheaper.
type loopTarget struct{ reply []byte }

// loopWait is how long the loop waits at most before it looks whether it is to end.
const loopWait = 100 * time.Millisecond

func newLoopTarget(_ context.Context, o *targetOptions) (target, error) {
	reply, err := os.ReadFile(filepath.Join(o.replies, "top50"))
	return &loopTarget{reply}, err
}

func (t *loopTarget) serve(ctx context.Context, ln net.Listener) error {
	loop, err := newRawLoop(t.reply)
	if err != nil {
		return err
	}
	defer loop.close()
	parts, ctx := errgroup.WithContext(ctx) // whichever ends, the other does
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	parts.Go(func() error { return loop.run(ctx) })
	parts.Go(func() error {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return err // ctx is done
			}
			if err := loop.add(conn); err != nil {
				return err
			}
		}
	})
	return parts.Wait()
}
