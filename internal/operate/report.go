package operate

import (
	"context"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
	"rankcache/origin"
)

type report interface {
	print(io.Writer) error
	err() error // with the exit code, once it is printed
}

// reporting returns the RunE of a command that prints a report. Clients' logs are left out: it has the errors.
func reporting[R report](load func(*cobra.Command) error, output *string, makeReport func(ctx context.Context, progress io.Writer) (R, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if err := load(cmd); err != nil {
			return err
		}
		origin.LogTo(slog.New(slog.DiscardHandler))
		r, err := makeReport(cmd.Context(), cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if err := cli.PrintAs(cmd.OutOrStdout(), *output, r, r.print); err != nil {
			return err
		}
		return r.err()
	}
}
