// Package app is rankcache's command line: the commands of [rankcache/internal/serve],
// [rankcache/internal/run] and [rankcache/internal/operate] under one root, and the commands that
// know several of them. Its tests run the whole command.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Version is set by the build (-ldflags "-X rankcache/internal/app.Version=…").
var Version = "dev"

// Exit codes, documented in README.md and in rankcache --help.
const (
	ExitOK       = 0   // done; for a long-running command: stopped by one signal, after its drain
	ExitFailed   = 1   // the command failed
	ExitUsage    = 2   // bad flag, configuration key or argument
	ExitDiffers  = 3   // verify, rankcache-lab demo: a board differs
	ExitSignaled = 130 // another signal, a second or more after the first, ended it at once
)

// ExitError carries the exit code of a failure that isn't [ExitFailed].
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// Usagef returns an error with [ExitUsage], for a mistake of the caller.
func Usagef(format string, args ...any) error {
	return &ExitError{ExitUsage, fmt.Errorf(format, args...)}
}

// Main runs the command line of the process and exits with its code. The first
// SIGINT or SIGTERM ends the command, after its drain.
func Main(root *cobra.Command) {
	err := Run(untilSignal(), root, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, root.Name()+":", err)
	}
	os.Exit(ExitCode(err))
}

// Run executes one command line. It returns when the command has ended or ctx
// is done and everything it started has stopped.
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) error {
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.InitDefaultHelpCmd()                                                     // cobra would add both after addKafkaFlags has
	root.InitDefaultCompletionCmd()                                               // looked for the command
	if len(args) == 0 || !strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) { // else the shell asks
		if err := findCommand(root, args); err != nil {
			return err
		}
		if err := addKafkaFlags(root, args); err != nil {
			return err
		}
	}
	return root.ExecuteContext(ctx)
}

// findCommand refuses names that no command has, also below a command and as the
// argument of help: cobra would print help and call that success.
func findCommand(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err != nil {
		return &ExitError{ExitUsage, err}
	}
	if cmd.Name() == "help" {
		return findCommand(root, rest)
	}
	if !cmd.Runnable() && cmd.ParseFlags(rest) == nil && cmd.Flags().NArg() > 0 {
		return Usagef("unknown command %q for %q", cmd.Flags().Arg(0), cmd.CommandPath())
	}
	return nil
}

// ExitCode returns the exit code that err stands for.
func ExitCode(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return exit.Code
	}
	return ExitFailed
}

// NewCommand returns the command line of rankcache.
func NewCommand() *cobra.Command {
	root := NewRoot(&cobra.Command{
		Use:   "rankcache",
		Short: "Leaderboards answered from local memory, beside the app",
		Long: `rankcache is a sidecar: the app asks localhost for a leaderboard and is answered
from memory. Kafka and Redis stay the systems of record.

Every flag is also an environment variable (--redis-timeout: RANKCACHE_REDIS_TIMEOUT)
and a key of the YAML file given by --config (redis-timeout). Addresses are host:port,
:port, http://host:port or unix:/path.

Exit codes: 0 done, or stopped by one SIGTERM or SIGINT; 1 failed; 2 bad flag or
configuration; 3 verify, ledger check, rebuild --dry-run: a board is wrong; 130 ended at once by another signal a second or more later. SIGHUP
ends no serve, write, ledger, poll or controller: it has the files of secrets read again.`,
		Example: `  rankcache doctor --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml
  rankcache serve --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml
  rankcache write --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml`,
	})
	root.PersistentFlags().String("config", "", "YAML `file` of settings, named as the flags are")
	root.AddCommand(LongRunning()...)
	root.AddCommand(
		fromConfig(newHotCommand()), newRoomsCommand(), newClassesCommand(), newConfigCommand(), fromConfig(newWaitCommand()), newDoctorCommand(&serveOptions{}), newVerifyCommand(), newRebuildCommand(), newBigCommand(), newDebugCommand(), fromConfig(newPlanCommand()), newVersionCommand(),
		movedCommand("demo"), movedCommand("bench"))
	completeFlags(root)
	return root
}

// LongRunning returns the commands that run until they are stopped, in the order of the manual.
func LongRunning() []*cobra.Command {
	return []*cobra.Command{newServeCommand(), newWriteCommand(), newLedgerCommand(), newReconcileCommand(), newPollCommand(), newControllerCommand()}
}

// NewRoot gives a root command what all commands of the project share: errors
// are printed once, by [Main], and a bad flag ends with [ExitUsage].
func NewRoot(root *cobra.Command) *cobra.Command {
	root.SilenceUsage, root.SilenceErrors = true, true
	groupUsage(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return Usagef("%w (see %s --help)", err, cmd.CommandPath())
	})
	return root
}

// movedCommand is a hidden command whose error names rankcache-lab, which has it:
// that binary links servers and load generators that no pod needs.
func movedCommand(name string) *cobra.Command {
	return &cobra.Command{Use: name, Hidden: true, DisableFlagParsing: true, RunE: func(*cobra.Command, []string) error {
		return Usagef("%[1]s is a command of rankcache-lab: run \"make build\" and bin/rankcache-lab %[1]s", name)
	}}
}
