package bench

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
	"rankcache/internal/lab/measure"
)

// NewCommand returns the command of the benchmarks.
func NewCommand() *cobra.Command {
	bench := &cobra.Command{
		Use:   "bench",
		Short: "Measure on this machine what docs/BENCHMARKS.md reports",
		Example: `  rankcache-lab bench replay -o json
  rankcache-lab bench read -o json
  rankcache-lab bench hot -o json`,
	}
	bench.AddCommand(newBenchReplayCommand(), newBenchOpenCommand(), newSidecarCommand(), newLogCommand(), newBenchReadCommand(), newBenchWriteCommand(), newBenchPodsCommand(), newBenchVisibleCommand(), newBenchTailCommand(), newBenchFleetCommand(), newBenchStartCommand(), newBenchRESPCommand(), newBenchLiveCommand(), newBenchTargetCommand(), newBenchChartCommand(),
		newBenchHotCommand(), newBenchProfileCommand(), newBrokerCommand())
	return bench
}

// reporting has cmd, without arguments, measure by run, which tells its progress to to, and print the report as -o
// asks.
func reporting[R any](cmd *cobra.Command, to *io.Writer, run func(context.Context) (R, error), print func(R, io.Writer) error) *cobra.Command {
	cmd.Args = cli.NoArgs
	output := cli.OutputFlag(cmd.Flags(), "text")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		*to = &lineWriter{to: cmd.ErrOrStderr()}
		report, err := run(cmd.Context())
		if err != nil {
			return err
		}
		return cli.PrintAs(cmd.OutOrStdout(), *output, report, func(to io.Writer) error { return print(report, to) })
	}
	return cmd
}

func newBenchHotCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hot",
		Short: "Measure what counting requests costs",
		Example: `  rankcache-lab bench hot
  rankcache-lab bench hot -o json`,
		Args: cli.NoArgs,
	}
	output := cli.OutputFlag(cmd.Flags(), "text")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c := measure.Counters()
		if *output == "json" {
			return cli.PrintJSON(cmd.OutOrStdout(), c)
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "count, 5,000 boards:           %6.1f ns\ncount, 1,000,000 made-up names: %5.1f ns\nmemory of the counters:        %6d KiB\n",
			c.CountNS, c.CountFloodNS, c.MemBytes>>10)
		return err
	}
	return cmd
}

// median returns the middle of values, or the mean of the middle two. It sorts them.
func median[T int64 | float64](values []T) T {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

func newBenchProfileCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "Measure joining profiles, reusing a page, and the cache's hit ratio",
		Example: `  rankcache-lab bench profile
  rankcache-lab bench profile -o json`,
		Args: cli.NoArgs,
	}
	output := cli.OutputFlag(cmd.Flags(), "text")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f, err := measure.Profiles(cmd.Context())
		if err != nil {
			return err
		}
		if *output == "json" {
			return cli.PrintJSON(cmd.OutOrStdout(), f)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "page of 50, joined and encoded: %6.1f us\nthe same page kept, reused:     %6.1f ns, %g allocations\nheap per profile of 150 bytes:  %6.0f bytes\nhit ratio: %.3f, exact LRU of as many entries: %.3f\n",
			f.PageEncodeUs, f.PageReuseNs, f.PageReuseAllocs, f.BytesPerEntry, f.HitRatio, f.HitRatioLRU)
		return err
	}
	return cmd
}
