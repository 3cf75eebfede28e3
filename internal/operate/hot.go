package operate

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
)

// NewHotCommand returns rankcache hot.
func NewHotCommand() *cobra.Command {
	c := &cli.AdminClient{}
	cmd := &cobra.Command{
		Use:   "hot",
		Short: "Print which boards are hot in a running sidecar",
		Example: `  rankcache hot
  kubectl exec app-0 -c rankcache -- rankcache hot -o json`,
		Args: cli.NoArgs,
	}
	c.Register(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		body, err := c.Ask(cmd.Context(), http.MethodGet, "/hotkeys", nil)
		if err != nil {
			return err
		}
		return c.Print(cmd.OutOrStdout(), body, printHot)
	}
	return cmd
}

func printHot(to io.Writer, body []byte) error {
	var answer cli.HotAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
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
