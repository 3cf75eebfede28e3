package run

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/ledger"
	"rankcache/origin"
)

const boardsAtOnce = 1000 // how many names of boards are read at a time

// withDatabase returns the RunE of a command that prints what it does with the ledger's database.
func withDatabase(database *cli.Secret, do func(context.Context, *ledger.Store) (done string, err error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if _, err := cli.LoadConfig(cmd); err != nil {
			return err
		}
		if _, err := cli.SecretsOf(cmd.Flags()); err != nil {
			return err
		}
		store, err := cli.OpenDatabase(nil, database)
		if err != nil {
			return err
		}
		defer store.Close()
		done, err := do(cmd.Context(), store)
		if err == nil {
			fmt.Fprintln(cmd.OutOrStdout(), done)
		}
		return err
	}
}

func newLedgerMigrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Make the ledger's tables, or bring them to this version",
		Long: `Make the tables of the ledger, or bring those of an earlier version to this one, and
print the version. Run it as a user who may, where the ledger's own user may not
(--database-check).`,
		Example: "  rankcache ledger migrate --database-file /run/secrets/database-owner",
		Args:    cli.NoArgs,
	}
	database, index := cli.RegisterDatabase(cmd.Flags()), false
	registerServeReads(cmd.Flags(), &index, "make the index that rankcache ledger --serve-reads needs, too")
	cmd.RunE = withDatabase(database, func(ctx context.Context, store *ledger.Store) (string, error) {
		err := store.Migrate(ctx)
		if err == nil && index {
			err = store.MakeRankIndex(ctx)
		}
		return fmt.Sprintf("the ledger's tables are version %d", store.Wanted()), err
	})
	return cmd
}

func newLedgerRetakeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retake",
		Short: "Apply the records of rank_bad that this version can read",
		Long: `Apply the records of rank_bad that this version can read as changes, each in one transaction
with its removal, and print how many, and how many stay. A ledger does so at its start.`,
		Example: "  rankcache ledger retake --database-file /run/secrets/database",
		Args:    cli.NoArgs,
	}
	cmd.RunE = withDatabase(cli.RegisterDatabase(cmd.Flags()), func(ctx context.Context, store *ledger.Store) (string, error) {
		if err := store.Check(ctx); err != nil {
			return "", err
		}
		taken, err := store.TakeAgain(ctx)
		if err != nil {
			return "", err
		}
		left, err := store.Bad(ctx)
		return fmt.Sprintf("%d records of rank_bad were applied, %d stay", taken, left), err
	})
	return cmd
}

type ledgerReport struct {
	Boards     int             `json:"boards"`
	Differs    []*ledger.Proof `json:"differs"`
	BeganAgain []*ledger.Proof `json:"began_again"` // with the life before
}

type checkOptions struct {
	cli.Options
	database *cli.Secret
	board    string
	deep     bool
	store    *ledger.Store
	redis    ledger.Redis // nil: it is not compared
}

func newLedgerCheckCommand() *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Compare the ledger's boards with themselves, and with Redis",
		Long: `Check that no change of a board is missing in rank_log or at another run and seq, that
none is set aside, and that the scores in rank_score add up to the checksum of its latest
change. Each board is read in one snapshot. Boards that began again are listed with what
they had before: if their keys were not to go, that is missing.

With --redis each board is compared with Redis, too, also while it changes: once the ledger
has the change that Redis had last, for which it waits up to 15 seconds, its checksum there
has to be Redis's; a ledger that is later than that is not proved. Boards that Redis does
not have, or that are being adopted, are left out.

With --deep each change that is kept has to give its checksum, and its score, from the
changes before it: no other check sees one in the middle that was changed. It takes memory
for a change of each member. What comes after a change by another client in Redis counts
from there on. Times and order ids are in no checksum.

It changes nothing, and does not read Kafka.

Exit codes: 0 all boards are proved, 1 failed, 2 bad flag, 3 a board is not, differs from
Redis, or has a change that does not follow.`,
		Example: `  rankcache ledger check --database-file /run/secrets/database
  rankcache ledger check --database-file /run/secrets/database --redis redis://redis:6379 --deep
  rankcache ledger check --board money:7 -o json`,
		Args: cli.NoArgs,
	}
	flags := cmd.Flags()
	o.database = cli.RegisterDatabase(flags)
	o.RegisterRedis(flags)
	o.RegisterNames(flags)
	flags.StringVar(&o.board, "board", "", "the only `board` to check; empty: all")
	flags.BoolVar(&o.deep, "deep", false, "go through each change that is kept")
	cli.MarkTyped(flags, "board", "deep")
	output := cli.OutputFlag(flags, "text")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		err := o.Load(cmd)
		if err == nil {
			o.store, err = cli.OpenDatabase(&o.Options, o.database)
		}
		if err != nil {
			return err
		}
		defer o.store.Close()
		if flags.Changed("redis") {
			client, err := o.DialRedis()
			if err != nil {
				return err
			}
			defer client.Close()
			o.redis = origin.New(client, o.Names, origin.WithTimeout(o.RedisTimeout))
		}
		report := &ledgerReport{Differs: []*ledger.Proof{}, BeganAgain: []*ledger.Proof{}}
		if err := report.check(cmd.Context(), o); err != nil {
			return err
		}
		if err := cli.PrintAs(cmd.OutOrStdout(), *output, report, report.print); err != nil {
			return err
		}
		if n := len(report.Differs); n > 0 {
			return &cli.ExitError{Code: cli.ExitDiffers, Err: fmt.Errorf("ledger check: %d of %d boards are not proved", n, report.Boards)}
		}
		return nil
	}
	return cmd
}

func (r *ledgerReport) check(ctx context.Context, o *checkOptions) error {
	if o.board != "" {
		id, err := rankcache.ParseBoardID(o.board)
		if err != nil {
			return cli.Usagef("--board: %w", err)
		}
		return r.prove(ctx, o, id)
	}
	for after := rankcache.BoardID(""); ; {
		boards, err := o.store.Boards(ctx, "", after, boardsAtOnce)
		if err != nil || len(boards) == 0 {
			return err
		}
		for _, after = range boards {
			if err := r.prove(ctx, o, after); err != nil {
				return err
			}
		}
	}
}

func (r *ledgerReport) prove(ctx context.Context, o *checkOptions, board rankcache.BoardID) error {
	p, err := o.store.Prove(ctx, board)
	if err == nil && o.deep && p.Missing == 0 {
		p.Folded, err = o.store.Fold(ctx, board)
	}
	if err == nil && o.redis != nil {
		p.InRedis, err = o.store.Compare(ctx, board, o.redis, nil)
	}
	if err != nil {
		return err
	}
	r.Boards++
	if p.Why() != "" {
		p.Proved = false
		r.Differs = append(r.Differs, p)
	}
	if p.Earlier != nil {
		r.BeganAgain = append(r.BeganAgain, p)
	}
	return nil
}

func (r *ledgerReport) print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, p := range r.Differs {
		fmt.Fprintf(table, "%s\t%s\n", p.Board, p.Why())
	}
	for _, p := range r.BeganAgain {
		fmt.Fprintf(table, "%s\tbegan again: %v\n", p.Board, p.Earlier)
	}
	fmt.Fprintf(table, "%d boards, %d not proved\n", r.Boards, len(r.Differs))
	return table.Flush()
}
