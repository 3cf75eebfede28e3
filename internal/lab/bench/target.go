package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"rankcache/internal/cli"
)

// A target is one server of bench read in a process of its own, so that its CPU
// time can be distinguished from that of other processes. When it is ready it prints one line of
// JSON (targetReady). Then it obeys the lines of its input, each of which is
// answered by a line "ok":
//
//	updates N     apply N updates a second
//	profile FILE  begin a CPU profile
//	profile       end it
//
// The end of its input ends it, so that it never outlives its parent.

// targetOptions are the targets' flags.
type targetOptions struct {
	socket   string
	redis    string
	replies  string
	members  int
	profiles int
}

// targetReady is the first line of a target.
type targetReady struct {
	TCP    string `json:"tcp"`
	HeapMB int    `json:"heap_mb"` // live heap, ready and idle
}

// target is one server.
type target interface {
	// serve answers on ln until ctx is done. It is called for each listener.
	serve(ctx context.Context, ln net.Listener) error
}

// backgroundTarget has more to do than to answer.
type backgroundTarget interface {
	run(ctx context.Context) error
}

// updatedTarget can apply updates while it answers.
type updatedTarget interface{ setUpdates(perSecond int) }

// targetMakers builds the targets by name, filled and ready to serve.
var targetMakers = map[string]func(context.Context, *targetOptions) (target, error){
	"rankcache": newRankcacheTarget,
	"fixed":     newFixedTarget,
	"plain":     newPlainTarget,
	"kept":      newKeptTarget,
	"sortedset": newSortedsetTarget,
	"resp":      newRESPTarget,
	"redcon":    newRedconTarget,
	"relay":     newRelayTarget,
}

// newBenchTargetCommand is for bench read, which calls this program again.
func newBenchTargetCommand() *cobra.Command {
	o := &targetOptions{}
	cmd := &cobra.Command{Use: "target NAME", Short: "One server of bench read", Hidden: true, Args: cli.OneArg}
	flags := cmd.Flags()
	flags.StringVar(&o.socket, "target-socket", "", "Unix socket `file` to listen on")
	flags.StringVar(&o.redis, "target-redis", "", "`address` of a filled Redis")
	flags.StringVar(&o.replies, "target-replies", "", "`folder` of the replies that target fixed gives")
	flags.IntVar(&o.members, "target-members", benchMembers, "members of the board")
	flags.IntVar(&o.profiles, "target-profiles", 0, "profiles cached beside it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		build, ok := targetMakers[args[0]]
		if !ok {
			return cli.Usagef("no target %q", args[0])
		}
		return runTarget(cmd.Context(), build, o, cmd.InOrStdin(), cmd.OutOrStdout())
	}
	return cmd
}

// errInputEnded is the cause with which a target ends.
var errInputEnded = errors.New("input ended")

func runTarget(ctx context.Context, build func(context.Context, *targetOptions) (target, error), o *targetOptions, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t, err := build(ctx, o)
	if err != nil {
		return err
	}
	listeners, err := targetListeners(o)
	if err != nil {
		return err
	}
	parts, ctx := errgroup.WithContext(ctx)
	for _, ln := range listeners {
		parts.Go(func() error { return t.serve(ctx, ln) })
	}
	if t, ok := t.(backgroundTarget); ok {
		parts.Go(func() error { return t.run(ctx) })
	}
	go func() {
		cancel(obey(t, targetReady{TCP: listeners[0].Addr().String(), HeapMB: int(heapNow() >> 20)}, in, out))
	}()
	if err := parts.Wait(); err != nil && !errors.Is(context.Cause(ctx), errInputEnded) {
		return err
	}
	return nil
}

// targetListeners opens the TCP listener and, if it is configured, the socket.
func targetListeners(o *targetOptions) ([]net.Listener, error) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil || o.socket == "" {
		return []net.Listener{tcp}, err
	}
	unix, err := net.Listen("unix", o.socket)
	return []net.Listener{tcp, unix}, err
}

// obey reports that t is ready and carries out the lines of in. It returns when
// there are no more.
func obey(t target, ready targetReady, in io.Reader, out io.Writer) error {
	if err := json.NewEncoder(out).Encode(ready); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if err := command(t, lines.Text()); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, "ok"); err != nil {
			return err
		}
	}
	return errInputEnded
}

func command(t target, line string) error {
	word, arg, _ := strings.Cut(line, " ")
	switch word {
	case "updates":
		perSecond, err := strconv.Atoi(arg)
		if updated, can := t.(updatedTarget); can && err == nil {
			updated.setUpdates(perSecond)
			return nil
		}
	case "profile":
		return profileInto(arg)
	}
	return fmt.Errorf("a target that can't %q", line)
}

// profileInto begins a CPU profile, or ends the one that was begun.
func profileInto(file string) error {
	if file == "" {
		pprof.StopCPUProfile()
		return nil
	}
	f, err := os.Create(file) // stays open until the process ends, soon
	if err != nil {
		return err
	}
	return pprof.StartCPUProfile(f)
}
