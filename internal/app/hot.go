package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankcache/hotkey"
)

// hotAnswer is the stable JSON of /hotkeys.
type hotAnswer struct {
	Enabled bool         `json:"enabled"` // false: there is no hot tier
	Boards  []hotkey.Row `json:"boards"`
	Verdict *hotVerdict  `json:"verdict"` // the fleet's newest; null before the first
}

// hotVerdict is the fleet's verdict and how long ago it was first seen here.
type hotVerdict struct {
	Source  string              `json:"source"`
	Poller  string              `json:"poller"`
	At      time.Time           `json:"at"` // by the poller's clock
	SeenAgo int64               `json:"seen_ago_ms"`
	Counts  bool                `json:"counts"` // false: it is too old and decides nothing
	Boards  []hotkey.BoardCount `json:"boards"`
	Ignored int                 `json:"ignored"` // hot keys that are no board's
}

func newHotCommand() *cobra.Command {
	c := &adminClient{}
	cmd := &cobra.Command{
		Use:   "hot",
		Short: "Print which boards are hot in a running sidecar",
		Example: `  rankcache hot
  kubectl exec app-0 -c rankcache -- rankcache hot -o json`,
		Args: NoArgs,
	}
	c.register(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		body, err := c.ask(cmd.Context(), http.MethodGet, "/hotkeys", nil)
		if err != nil {
			return err
		}
		return c.print(cmd.OutOrStdout(), body, printHot)
	}
	return cmd
}

func printHot(to io.Writer, body []byte) error {
	var answer hotAnswer
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

// registerHot registers the settings of the hot tier.
func registerHot(flags *pflag.FlagSet, on *bool, c *hotkey.Config) {
	flags.BoolVar(on, "hot", true, "keep the top pages of hot boards locally")
	flags.Float64Var(&c.PromoteRate, "hot-promote-rate", hotkey.DefaultPromoteRate, "own `requests/s` that promote a board")
	flags.DurationVar(&c.Residency, "hot-residency", hotkey.DefaultResidency, "least time that a board stays hot")
	flags.DurationVar(&c.ExitAfter, "hot-exit-after", hotkey.DefaultExitAfter, "how long a board must stay below its exit rate")
	flags.DurationVar(&c.CoolDown, "hot-cool-down", hotkey.DefaultCoolDown, "how long a demoted board is not promoted again")
	flags.IntVar(&c.MaxBoards, "hot-max-boards", hotkey.DefaultMaxBoards, "most hot `boards`; a hotter one evicts the coldest")
	flags.IntVar(&c.Entries, "hot-entries", hotkey.DefaultEntries, "`rows` of a hot board's page")
	flags.DurationVar(&c.Refresh, "hot-refresh", hotkey.DefaultRefresh, "how often a page is refreshed while it is requested")
	flags.DurationVar(&c.Stale, "hot-stale", hotkey.DefaultStale, "greatest age of a page served while Redis can't be read")
}
