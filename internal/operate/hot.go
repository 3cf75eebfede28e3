package operate

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
)

func NewHotCommand() *cobra.Command {
	return cli.Showing(&cobra.Command{
		Use:   "hot",
		Short: "Print which boards are hot in a running sidecar",
		Example: `  rankcache hot
  kubectl exec app-0 -c rankcache -- rankcache hot -o json`,
	}, "/hotkeys", printHot)
}

func printHot(to io.Writer, answer *cli.HotAnswer) error {
	if len(answer.Boards) == 0 {
		_, err := fmt.Fprintln(to, "no board is hot or near it")
		return err
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BOARD\tSTATE\tCAUSE\tSINCE\tREQUESTS/S\tAPI COUNT\tPAGE AGE\tHITS")
	for _, r := range answer.Boards {
		since, age := "-", "-"
		if !r.Since.IsZero() {
			since = time.Since(r.Since).Round(time.Second).String()
		}
		if r.PageAge >= 0 {
			age = fmt.Sprintf("%d ms", r.PageAge)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.1f\t%d\t%s\t%d\n", r.Board, r.State, r.Cause, since, r.Rate, r.APICount, age, r.Hits)
	}
	return table.Flush()
}
