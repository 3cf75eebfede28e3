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
)

// boardsAtOnce is how many names of boards are read at a time.
const boardsAtOnce = 1000

// loadDatabase reads the configuration and returns the ledger's database, which the caller
// closes.
func loadDatabase(cmd *cobra.Command, database *cli.Secret) (*ledger.Store, error) {
	if _, err := cli.LoadConfig(cmd); err != nil {
		return nil, err
	}
	if _, err := cli.SecretsOf(cmd.Flags()); err != nil {
		return nil, err
	}
	return cli.OpenDatabase(database)
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
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		store, err := loadDatabase(cmd, database)
		if err != nil {
			return err
		}
		defer store.Close()
		err = store.Migrate(cmd.Context())
		if err == nil && index {
			err = store.MakeRankIndex(cmd.Context())
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "the ledger's tables are version %d\n", store.Wanted())
		return nil
	}
	return cmd
}

// ledgerReport is the stable JSON of rankcache ledger check.
type ledgerReport struct {
	Boards     int             `json:"boards"`
	Differs    []*ledger.Proof `json:"differs"`
	BeganAgain []*ledger.Proof `json:"began_again"` // with the life before
}

func newLedgerCheckCommand() *cobra.Command {
	var board string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Compare the ledger's boards with themselves: no change missing, scores add up",
		Long: `Check that no change of a board is missing in rank_log, and that the scores in
rank_score add up to the checksum of its latest change. Each board is read in one
snapshot. It changes nothing, and reads neither Redis nor Kafka. Boards that began again
are listed with what they had before: if their keys were not to go, that is missing.

Exit codes: 0 all boards are proved, 1 failed, 2 bad flag, 3 a board is not.`,
		Example: `  rankcache ledger check --database-file /run/secrets/database
  rankcache ledger check --board money:7 -o json`,
		Args: cli.NoArgs,
	}
	database := cli.RegisterDatabase(cmd.Flags())
	cmd.Flags().StringVar(&board, "board", "", "the only `board` to check; empty: all")
	cli.MarkTyped(cmd.Flags(), "board")
	output := cli.OutputFlag(cmd.Flags(), "text")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		store, err := loadDatabase(cmd, database)
		if err != nil {
			return err
		}
		defer store.Close()
		report := &ledgerReport{Differs: []*ledger.Proof{}, BeganAgain: []*ledger.Proof{}}
		if err := report.check(cmd.Context(), store, board); err != nil {
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

// check proves one board, or all.
func (r *ledgerReport) check(ctx context.Context, store *ledger.Store, board string) error {
	if board != "" {
		id, err := rankcache.ParseBoardID(board)
		if err != nil {
			return cli.Usagef("--board: %w", err)
		}
		return r.prove(ctx, store, id)
	}
	for after := rankcache.BoardID(""); ; {
		boards, err := store.Boards(ctx, "", after, boardsAtOnce)
		if err != nil || len(boards) == 0 {
			return err
		}
		for _, after = range boards {
			if err := r.prove(ctx, store, after); err != nil {
				return err
			}
		}
	}
}

func (r *ledgerReport) prove(ctx context.Context, store *ledger.Store, board rankcache.BoardID) error {
	p, err := store.Prove(ctx, board)
	if err != nil {
		return err
	}
	r.Boards++
	if !p.Proved {
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
