package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes, documented in README.md and in rankcache --help.
const (
	ExitOK       = 0   // done; for a long-running command: stopped by one signal, after its drain
	ExitFailed   = 1   // the command failed
	ExitUsage    = 2   // bad flag, configuration key or argument
	ExitDiffers  = 3   // verify, rebuild, reconcile, ledger check, rankcache-lab demo: something differs
	ExitSignaled = 130 // another signal, a second or more after the first, ended it at once
)

// ExitError carries the exit code of a failure that isn't [ExitFailed].
type ExitError struct {
	Code int
	Err  error
}

// Error returns the text of the cause.
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
	root.InitDefaultHelpCmd()                                                     // cobra would add both after AddKafkaFlags has
	root.InitDefaultCompletionCmd()                                               // looked for the command
	if len(args) == 0 || !strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) { // else the shell asks
		if err := findCommand(root, args); err != nil {
			return err
		}
		if err := AddKafkaFlags(root, args); err != nil {
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

// NewRoot gives a root command what all commands of the project share: errors
// are printed once, by [Main], and a bad flag ends with [ExitUsage].
func NewRoot(root *cobra.Command) *cobra.Command {
	root.SilenceUsage, root.SilenceErrors = true, true
	groupUsage(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
			err = fmt.Errorf("%w%s", err, suggest(cmd, unknown.GetSpecifiedName()))
		}
		return Usagef("%w (see %s --help)", err, cmd.CommandPath())
	})
	return root
}

// suggest returns the flag that may have been meant as a question, "" if none is like it.
func suggest(cmd *cobra.Command, name string) string {
	names := &cobra.Command{SuggestionsMinimumDistance: 2} // cobra compares names of commands
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	like := names.SuggestionsFor(name)
	if len(like) == 0 {
		return ""
	}
	begins := slices.IndexFunc(like, func(flag string) bool { return strings.HasPrefix(flag, name) }) // what is cut off is likelier than what is replaced
	return ", did you mean --" + like[max(begins, 0)] + "?"
}
