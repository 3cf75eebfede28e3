package load

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Run asks the question for as long as the configuration says, and returns what
// the window showed. The error is of the run itself: no connection, no such
// process, ctx ended; what the server got wrong is counted in the result.
//
// It keeps one thread busy. Two runs at a time disturb each other.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d, err := newDriver(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	defer d.close()
	if err := d.until(cfg.Warmup); err != nil {
		return nil, err
	}
	return d.window()
}

// window drives for the window between two looks at the servers' CPU time.
func (d *driver) window() (*Result, error) {
	before, err := CPU(d.cfg.Pids)
	if err != nil {
		return nil, err
	}
	from := d.now()
	d.result, d.counting = Result{latencies: d.room()}, true
	err = d.until(d.cfg.Window)
	d.counting = false
	to := d.now()
	after, cpuErr := CPU(d.cfg.Pids)
	switch {
	case err != nil:
		return nil, err
	case cpuErr != nil:
		return nil, fmt.Errorf("after the window: %w", cpuErr)
	}
	r := &d.result
	r.Window, r.CPU = time.Duration(to-from), after-before
	d.charge(from, to)
	slices.Sort(r.latencies)
	return r, nil
}

// room is for the latencies of the window, so that none has to be made in it.
func (d *driver) room() []time.Duration {
	return make([]time.Duration, 0, int(d.cfg.Rate*d.cfg.Window.Seconds())+d.cfg.Connections+1)
}
