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
	ExitUnasked  = 4   // verify, doctor, wait: nobody can tell, because a server could not be asked
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

// Main runs the command line and exits with its code. The first SIGINT or SIGTERM ends it, after its drain.
func Main(root *cobra.Command) {
	p := &process{logQueue: logQueue{to: os.Stderr}}
	err, text := Run(p.untilSignal(), root, os.Args[1:], os.Stdout, p), ""
	if err != nil {
		text = fmt.Sprintln(root.Name()+":", err)
	}
	p.exit(ExitCode(err), text)
}

// Run executes one command line. It returns when all that the command started has stopped.
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) error {
	args = takeHelpAll(root, args)
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
		addGoneFlags(root, args)
	}
	cmd, err := root.ExecuteContextC(ctx)
	tellGone(cmd.Flags(), func(warning string) { fmt.Fprintf(stderr, "%s: %s\n", root.Name(), warning) })
	return err
}

// findCommand refuses names that no command has: cobra would print help and call that success.
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

// NewRoot gives a root what all commands share: errors printed once, by [Main], and [ExitUsage] for bad flags.
func NewRoot(root *cobra.Command) *cobra.Command {
	root.SilenceUsage, root.SilenceErrors = true, true
	groupUsage(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
			err = fmt.Errorf("%w%s", err, suggest(cmd, unknown.GetSpecifiedName()))
		}
		return Usagef("%w (see %s --help)", inOurWords(err), cmd.CommandPath())
	})
	return root
}

// suggest returns the flag that may have been meant as a question, "" if none is like it.
func suggest(cmd *cobra.Command, name string) string {
	names, ofData := &cobra.Command{SuggestionsMinimumDistance: 2}, &cobra.Command{SuggestionsMinimumDistance: 1} // cobra compares names of commands
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		to := names
		if strings.HasPrefix(f.Name, "key-") || strings.HasPrefix(f.Name, "topic-") { // a wrong one would name other data
			to = ofData
		}
		to.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	like := append(names.SuggestionsFor(name), ofData.SuggestionsFor(name)...)
	like = slices.DeleteFunc(like, func(flag string) bool { return flag[0] != name[0] }) // else a short name is like any other
	if len(like) == 0 {
		return ""
	}
	begins := slices.IndexFunc(like, func(flag string) bool { return strings.HasPrefix(flag, name) }) // what is cut off is likelier than what is replaced
	return ", did you mean --" + like[max(begins, 0)] + "?"
}
