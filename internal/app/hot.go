package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

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

// serveHot answers GET /hotkeys on the admin port.
func (s *Sidecar) serveHot(w http.ResponseWriter, _ *http.Request) {
	answer := hotAnswer{Enabled: s.tracker != nil, Boards: []hotkey.Row{}}
	if answer.Enabled {
		answer.Boards = append(answer.Boards, s.tracker.Hot()...)
		answer.Verdict = s.fleetVerdict()
	}
	w.Header().Set("Content-Type", "application/json")
	PrintJSON(w, answer) // a caller who has gone needs no answer
}

// fleetVerdict returns the newest verdict, nil before the first.
func (s *Sidecar) fleetVerdict() *hotVerdict {
	v, seen := s.tracker.Verdict()
	if seen.IsZero() {
		return nil
	}
	ago := time.Since(seen)
	return &hotVerdict{Source: v.Source, Poller: v.Poller, At: v.At, SeenAgo: ago.Milliseconds(),
		Counts: ago <= cmp.Or(s.options.hot.VerdictAge, hotkey.DefaultVerdictAge),
		Boards: append([]hotkey.BoardCount{}, v.Boards...), Ignored: v.Ignored}
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
