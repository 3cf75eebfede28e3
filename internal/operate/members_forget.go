package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/places"
	"rankcache/ledger"
)

// forgetAtOnce is of how many boards a writer is asked in a request.
const forgetAtOnce = 100

// forgetOptions are the settings of rankcache members forget.
type forgetOptions struct {
	findOptions
	writer cli.AdminClient
	books  *ledger.Store // nil: there is none
	reason string
	yes    bool
}

// newForgetCommand returns rankcache members forget.
func newForgetCommand() *cobra.Command {
	o := &forgetOptions{}
	cmd := &cobra.Command{
		Use:   "forget",
		Short: "Take a member off all boards that are not closed, with all that Redis has of it there",
		Long: `Find the member as rankcache members find does, and with --yes have a writer forget it on
each board: a delete that every class takes, with its data, guards, gains, scores and what hides
it. Then find it again: what has become of each board, and what stays where, and until when.
Without --yes it changes nothing. With --database the ledger forgets, too: a day later, or two
order lives, its rows have a pseudonym; those of closed boards once Redis does not have them any
more. Its user needs SELECT, INSERT and DELETE there. Closed boards in Redis, topics, files, logs
and backups are left as they are. It may be repeated: after an error, and after an older Redis or
database was restored.
Where writers want tokens it needs one of --class-tokens with members:forget among its classes.

Exit codes: 0 no open board has the member; 1 failed; 2 bad flag; 3 a board or a place could not
be reached.`,
		Example: `  rankcache members forget --member 1000123 --reason "request 17" --redis redis://redis:6379
  rankcache members forget --member 1000123 --reason "request 17" --redis redis://redis:6379 --scores writer:8973 --write-token-file /run/secrets/forget --yes`,
		Args: cli.NoArgs,
	}
	o.register(cmd.Flags())
	output := o.writer.RegisterWriter(cmd)
	cmd.Flags().StringVar(&o.reason, "reason", "", "why: `text` of up to 200 bytes, for the writer's log")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "forget; else the boards are listed")
	cli.MarkTyped(cmd.Flags(), "yes")
	cmd.RunE = reporting(o.Load, output, func(ctx context.Context, progress io.Writer) (r *forgetReport, err error) {
		if o.reason == "" {
			return nil, cli.Usagef("want --reason")
		}
		if o.database.Get() != "" {
			if o.books, err = cli.OpenDatabase(&o.Options, o.database); err != nil {
				return nil, err
			}
			defer o.books.Close()
		}
		err = o.with(func(f *places.Finder) { r = o.forget(ctx, f, progress) })
		return r, err
	})
	return cmd
}

func (o *forgetOptions) forget(ctx context.Context, f *places.Finder, progress io.Writer) *forgetReport {
	found := f.Find(ctx, o.member)
	r := &forgetReport{findReport: findReport{o.member, found.Places}, Done: o.yes, Boards: []forgottenBoard{}}
	gone, err := o.booked(ctx, f, found)
	if err != nil {
		r.Boards = append(r.Boards, forgottenBoard{Is: "failed", Detail: "boards of the ledger: " + err.Error()})
	}
	if !o.yes {
		for _, b := range append(found.Boards, gone...) {
			r.Boards = append(r.Boards, forgottenBoard{Board: b, Is: "has it"})
		}
		return r
	}
	for part := range slices.Chunk(found.Boards, forgetAtOnce) {
		r.Boards = append(r.Boards, o.ask(ctx, f, part)...)
		fmt.Fprintf(progress, "%d of %d boards\n", len(r.Boards), len(found.Boards))
	}
	if len(found.Boards) == 0 { // the lists alone
		r.Boards = append(r.Boards, o.ask(ctx, f, []rankcache.BoardID{})...)
	}
	for _, b := range gone {
		r.Boards = append(r.Boards, forgottenBoard{Board: b, Is: "closed"})
	}
	for i := range r.Boards {
		o.fromBooks(ctx, &r.Boards[i])
	}
	after := f.Find(ctx, o.member)
	r.Places = after.Places
	for i := range r.Boards {
		if b := &r.Boards[i]; b.Is == "accepted" && !after.Places[0].Failed && !slices.Contains(after.Boards, b.Board) {
			b.Is, b.Detail = "forgotten", "-"
		}
	}
	return r
}

// booked adds to the boards those that Redis and the ledger have, and returns those that the ledger alone has.
func (o *forgetOptions) booked(ctx context.Context, f *places.Finder, found *places.Result) (gone []rankcache.BoardID, err error) {
	if o.books == nil {
		return nil, nil
	}
	boards, err := o.books.BoardsOf(ctx, o.member)
	for _, b := range boards {
		there, err := f.Redis.Exists(ctx, f.Names.MetaKey(b)).Result()
		switch {
		case err != nil:
			return gone, err
		case there == 0:
			gone = append(gone, b)
		case !slices.Contains(found.Boards, b):
			found.Boards = append(found.Boards, b)
		}
	}
	return gone, err
}

// fromBooks has the ledger forget the member on a closed board, too.
func (o *forgetOptions) fromBooks(ctx context.Context, b *forgottenBoard) {
	if o.books == nil || b.Is != "closed" {
		return
	}
	if err := o.books.ForgetGone(ctx, b.Board, o.member); err != nil {
		b.Is, b.Detail = "failed", "the ledger: "+err.Error()
		return
	}
	b.Detail += "in the ledger it has a pseudonym a day later, once Redis is without the board"
}

// ask has a writer forget the member on some boards, and take it out of the lists of whom classes hide.
func (o *forgetOptions) ask(ctx context.Context, f *places.Finder, boards []rankcache.BoardID) []forgottenBoard {
	body, _ := json.Marshal(map[string]any{"member": o.member, "reason": o.reason, "boards": boards, "lists": true}) // strings
	text, err := o.writer.Ask(ctx, http.MethodPost, "/v1/members:forget", body)
	var answer struct {
		Results []struct {
			Result  *struct{ State string }
			Problem struct{ Code, Title, Detail string }
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err == nil && len(answer.Results) != len(boards) {
		err = errors.New("the writer answers for other boards")
	}
	if err != nil && len(boards) == 0 {
		return []forgottenBoard{{Is: "failed", Detail: err.Error()}}
	}
	done := make([]forgottenBoard, len(boards))
	for i, b := range boards {
		if done[i] = (forgottenBoard{Board: b, Is: "failed"}); err != nil {
			done[i].Detail = err.Error()
			continue
		}
		switch a := answer.Results[i]; {
		case a.Result != nil:
			done[i].Is, done[i].Detail = "forgotten", a.Result.State
		case a.Problem.Code == "not_yet":
			done[i].Is, done[i].Detail = "accepted", "its command is in the topic, and not applied yet"
		case a.Problem.Code == "ended":
			done[i].Is, done[i].Detail = "closed", "its result stands "+staysInRedis(ctx, f, b)+"; "
		default:
			done[i].Detail = a.Problem.Code + ": " + cmp.Or(a.Problem.Detail, a.Problem.Title)
		}
	}
	return done
}

// staysInRedis tells until when Redis keeps a board.
func staysInRedis(ctx context.Context, f *places.Finder, b rankcache.BoardID) string {
	switch left, err := f.Redis.PTTL(ctx, f.Names.MetaKey(b)).Result(); {
	case err != nil:
		return "until a time that Redis does not tell: " + err.Error()
	case left < 0:
		return "for ever, as it has no period"
	default:
		return "until " + time.Now().Add(left).UTC().Format(time.RFC3339)
	}
}

// forgetReport is the stable JSON of rankcache members forget.
type forgetReport struct {
	findReport
	Done   bool             `json:"done"` // false: nothing was changed
	Boards []forgottenBoard `json:"boards"`
}

// forgottenBoard is what has become of the member on a board: "has it", "forgotten", "closed", "accepted" or "failed".
type forgottenBoard struct {
	Board  rankcache.BoardID `json:"board"`
	Is     string            `json:"is"`
	Detail string            `json:"detail,omitempty"`
}

func (r *forgetReport) err() error {
	failed := func(b forgottenBoard) bool { return b.Is == "failed" || b.Is == "accepted" }
	i := slices.IndexFunc(r.Boards, failed)
	if err := r.findReport.err(); err != nil || i < 0 { // it has why a board failed, too
		return err
	}
	return &cli.ExitError{Code: cli.ExitDiffers, Err: fmt.Errorf("not forgotten everywhere: board %s: %s; run it again", cmp.Or(r.Boards[i].Board, "-"), r.Boards[i].Detail)}
}

func (r *forgetReport) print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BOARD\tMEMBER\tDETAIL")
	for _, b := range r.Boards {
		fmt.Fprintf(table, "%s\t%s\t%s\n", cmp.Or(b.Board, "-"), b.Is, cmp.Or(b.Detail, "-"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(to)
	if err := r.findReport.print(to); err != nil || r.Done {
		return err
	}
	_, err := fmt.Fprintln(to, "\nNothing was changed: --yes forgets.")
	return err
}
