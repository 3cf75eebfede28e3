package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/tick"
)

// Defaults of rankcache wait.
const (
	defaultWaitMax   = 30 * time.Second
	defaultWaitEvery = 250 * time.Millisecond
	// waitCall bounds one request, so that a port that accepts and never answers doesn't take the whole time.
	waitCall = 2 * time.Second
	// waitBody is more than a probe answers, in bytes.
	waitBody = 1 << 20
)

// waitOptions are the settings of rankcache wait.
type waitOptions struct {
	health, admin, board, url string
	max, every                time.Duration
}

// WaitReport is the stable JSON of rankcache wait: the last state seen.
type WaitReport struct {
	Ready    bool            `json:"ready"`
	Answered bool            `json:"answered"` // the last request, as rankcache does
	Reason   string          `json:"reason"`
	WaitedMs int64           `json:"waited_ms"`
	Last     json.RawMessage `json:"last,omitempty"` // the last answer, if it was one
}

// NewWaitCommand returns rankcache wait.
func NewWaitCommand() *cobra.Command {
	o := &waitOptions{}
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Wait until a sidecar is ready, or until a board is open",
		Long: `Wait until the sidecar (or writer, or poller) behind --health reports that it is ready,
or, with --board, until its admin port reports that this board is answered from local
memory. With --url an app waits for the sidecar of its node on the port that it reads from, until
that answers, with --board until it answers this board: a Service leads to ready sidecars alone.
Progress is written to standard error.

Exit codes: 0 ready, 1 not ready within --max, 2 bad flag, 4 nobody can tell: there was no answer at the end, or none
of rankcache, or it does not tell this caller.`,
		Example: `  rankcache wait --max 2m
  rankcache wait --board 1_2_3 -o json
  rankcache wait --health :8974 --max 10s
  rankcache wait --url http://rankcache-node:8970 --max 5m`,
		Args: cli.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.health, "health", cli.DefaultHealth, "`address` of the health port")
	cli.RegisterAdmin(flags, &o.admin)
	flags.StringVar(&o.board, "board", "", "wait until this `board` is open instead")
	flags.StringVar(&o.url, "url", "", "wait until the data port at this `URL` answers instead, such as http://rankcache-node:8970")
	flags.DurationVar(&o.max, "max", defaultWaitMax, "longest to wait; 0: check once")
	flags.DurationVar(&o.every, "every", defaultWaitEvery, "pause between two requests")
	output := cli.OutputFlag(flags, "text")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		report, err := wait(cmd.Context(), o, cmd.ErrOrStderr())
		if report == nil {
			return err
		}
		if printed := cli.PrintAs(cmd.OutOrStdout(), *output, report, func(io.Writer) error { return nil }); printed != nil {
			return printed
		}
		return err
	}
	return cmd
}

// wait asks until the answer is yes. The report is nil for a mistake of the caller.
func wait(ctx context.Context, o *waitOptions, progress io.Writer) (*WaitReport, error) {
	look, err := o.look()
	if err != nil {
		return nil, err
	}
	begin, logged := time.Now(), ""
	ctx, cancel := context.WithTimeout(ctx, max(o.max, 0)+waitCall)
	defer cancel()
	for {
		report := look(ctx)
		waited := time.Since(begin)
		report.WaitedMs = waited.Milliseconds()
		if report.Reason != logged {
			logged = report.Reason
			fmt.Fprintln(progress, logged)
		}
		if report.Ready {
			return report, nil
		}
		if waited+o.every > o.max || !tick.Sleep(ctx, o.every) {
			return report, report.err(waited.Round(time.Millisecond))
		}
	}
}

// err returns the exit code as an error: not to be ready is an answer, too.
func (r *WaitReport) err(after time.Duration) error {
	if !r.Answered {
		return &cli.ExitError{Code: cli.ExitUnasked, Err: fmt.Errorf("can't tell whether it is ready, after %v: %s", after, r.Reason)}
	}
	return fmt.Errorf("not ready after %v: %s", after, r.Reason)
}

// look returns the function that asks once.
func (o *waitOptions) look() (func(context.Context) *WaitReport, error) {
	flag, text, path, judge := "health", o.health, "/readyz", processReady
	if _, err := rankcache.ParseBoardID(o.board); err != nil && o.board != "" {
		return nil, cli.Usagef("--board: %w", err)
	}
	switch {
	case o.url != "" && o.board != "":
		flag, text, path, judge = "url", o.url, "/v1/boards/"+url.PathEscape(o.board)+"/top?limit=1", portAnswers
	case o.url != "":
		flag, text, path, judge = "url", o.url, "/v1/classes", portAnswers
	case o.board != "":
		flag, text, path, judge = "admin", o.admin, "/status/"+url.PathEscape(o.board), boardOpen
	}
	addr, err := cli.ParseAddress(flag, text)
	if err != nil {
		return nil, err
	}
	base, client := addr.Client()
	return func(ctx context.Context) *WaitReport { return askState(ctx, client, base+path, judge) }, nil
}

// askState gets a state and has judge decide what it means.
func askState(ctx context.Context, client *http.Client, at string, judge func(status int, body []byte) (bool, string)) *WaitReport {
	ctx, cancel := context.WithTimeout(ctx, waitCall)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return &WaitReport{Reason: err.Error()}
	}
	resp, err := client.Do(req)
	if err != nil {
		return &WaitReport{Reason: "no answer: " + err.Error()}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, waitBody))
	if err != nil || !json.Valid(body) {
		return &WaitReport{Reason: fmt.Sprintf("%s answers %s, but not as rankcache does: is it the right port?", at, resp.Status)}
	}
	report := &WaitReport{Last: body, Answered: resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden}
	report.Ready, report.Reason = judge(resp.StatusCode, body)
	return report
}

// processReady reads the answer of /readyz.
func processReady(status int, body []byte) (bool, string) {
	var probe struct {
		State, Reason string
		Open          int `json:"boards_open"`
		Total         int `json:"boards_total"`
		Boards        []boardProgress
	}
	if err := json.Unmarshal(body, &probe); err != nil || probe.State == "" {
		return false, "the answer has no state: is it rankcache's health port?"
	}
	text := probe.State
	if probe.Reason != "" {
		text += ": " + probe.Reason
	}
	if status == http.StatusOK || len(probe.Boards) == 0 {
		return status == http.StatusOK, text
	}
	return false, fmt.Sprintf("%s; %d of %d boards open; %s", text, probe.Open, probe.Total, &probe.Boards[0])
}

// boardOpen reads the answer of /status/{board}.
func boardOpen(status int, body []byte) (bool, string) {
	var board struct {
		Mode, Code, Detail string
		Replay             *boardProgress
	}
	err := json.Unmarshal(body, &board)
	switch {
	case err != nil || status != http.StatusOK:
		return false, fmt.Sprintf("the admin port answers %d %s %s", status, board.Code, board.Detail)
	case board.Replay == nil:
		return false, "the board is not super-hot here (mode " + board.Mode + "), so it never opens: name it in the rooms file"
	}
	return board.Replay.State == rankcache.StateOpen, board.Replay.String()
}

// portAnswers reads an answer of the data port.
func portAnswers(status int, body []byte) (bool, string) {
	var problem struct{ Code, Detail string }
	_ = json.Unmarshal(body, &problem) // a page has neither
	if status == http.StatusOK {
		return true, "the data port answers"
	}
	return false, fmt.Sprintf("the data port answers %d %s %s", status, problem.Code, problem.Detail)
}

// boardProgress is what probes report of a board.
type boardProgress struct {
	Board  rankcache.BoardID
	State  rankcache.BoardState
	Reason string
	Have   uint64
	Want   *uint64
}

// String has progress in tenths, so that a line is not printed for every update.
func (b *boardProgress) String() string {
	text := fmt.Sprintf("%s is %s", b.Board, b.State)
	if b.Want != nil && b.State != rankcache.StateOpen {
		text += fmt.Sprintf(", %d %% there", 10*min(b.Have*10/max(*b.Want, 1), 10))
	}
	if b.Reason != "" {
		text += ": " + b.Reason
	}
	return text
}
