package cli

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

const envHang = "RANKCACHE_TEST_HANG"

// hang is a long-running command that minds no signal, as one in a call into C.
func hang() {
	o := &Options{}
	cmd := NewRoot(&cobra.Command{Use: "hang"})
	o.Register(cmd.Flags())
	cmd.RunE = o.LongRunning(func(_ *cobra.Command, log *slog.Logger) error {
		log.Info("here")
		<-context.Background().Done()
		return nil
	})
	Main(cmd)
}

// TestAnEndComes: a process that hangs ends after its drain, with what it was at.
func TestAnEndComes(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envHang+"=1")
	var said bytes.Buffer
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for b := make([]byte, 4<<10); !strings.Contains(said.String(), "here"); {
		n, err := out.Read(b)
		if said.Write(b[:n]); err != nil {
			t.Fatal(err, said.String())
		}
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_, _ = said.ReadFrom(out)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != ExitFailed || !strings.Contains(said.String(), "cli.hang") {
		t.Errorf("ended with %d, want %d with its stacks:\n%s", code, ExitFailed, said.String())
	}
}
