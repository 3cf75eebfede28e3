package load

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWatchCore: a program that keeps a core busy is seen there, and is not another one to itself.
func TestWatchCore(t *testing.T) {
	cores, err := Cores()
	if err != nil {
		t.Fatal(err)
	}
	core, ctx := cores[0], t.Context()
	busy := exec.CommandContext(ctx, "sh", "-c", "while :; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.002; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	if err := Pin(busy.Process.Pid, core); err != nil {
		t.Fatal(err)
	}
	seen := func(pid int) (total time.Duration) {
		w, err := WatchCore(core, pid)
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
			t.Skipf("NOT TESTED: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		waitCPU(ctx, t, busy.Process.Pid, 100*time.Millisecond)
		spans, err := w.Stop()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range spans {
			total += time.Duration(s.to - s.from)
		}
		return total
	}
	other, own := seen(os.Getpid()), seen(busy.Process.Pid)
	if other < 50*time.Millisecond || own > other {
		t.Errorf("others had the core for %v beside this process, and for %v beside the busy one", other, own)
	}
}

// waitCPU waits until a process has run for some time.
func waitCPU(ctx context.Context, t *testing.T, pid int, while time.Duration) {
	t.Helper()
	from, err := CPU([]int{pid})
	for now := from; err == nil && now-from < while && ctx.Err() == nil; now, err = CPU([]int{pid}) {
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
}
