package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
	"rankcache/internal/lab/servers"
)

// newBrokerCommand is kfake as a process of its own: in the process that is
// measured its buffers, one for each partition that is fetched, would count as
// the heap of the boards.
func newBrokerCommand() *cobra.Command {
	return &cobra.Command{Use: "broker", Short: "kfake for bench replay, until its input ends", Hidden: true, Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			broker, err := servers.StartKfake()
			if err != nil {
				return err
			}
			defer broker.Close()
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), broker.Addr()); err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, cmd.InOrStdin())
			return err
		}}
}

// startBroker runs this program again as [newBrokerCommand] and returns the
// broker's address, its process id and what ends it.
func startBroker(ctx context.Context) (addr string, pid int, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", 0, nil, err
	}
	cmd := exec.CommandContext(ctx, self, "bench", "broker")
	cmd.Stderr = os.Stderr // written by another goroutine than the progress
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		return "", 0, nil, fmt.Errorf("start kfake: %w", err)
	}
	stop = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", 0, nil, errors.Join(fmt.Errorf("start kfake: it did not print its address: %w", err), stop())
	}
	return strings.TrimSpace(line), cmd.Process.Pid, stop, nil
}
