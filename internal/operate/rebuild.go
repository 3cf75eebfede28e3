package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/roomsync"
	"rankcache/ledger"
	"rankcache/ledger/rebuild"
	"rankcache/origin"
	"rankcache/writer"
)

type rebuildOptions struct {
	cli.Options
	database     *cli.Secret
	board, class string
	from         string
	dryRun       bool
	earlier      bool
	both         bool
	wait         time.Duration
	// Of boards that Redis does not have and no class sets.
	boardLife, orderLife time.Duration
	buckets              int
}

func NewRebuildCommand() *cobra.Command {
	o := &rebuildOptions{}
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Write boards in Redis again from the ledger, or from their updates in Kafka: boards that are wrong or gone",
		Long: `Write a board in Redis again from the ledger, or all boards of a class one after the
other: members, scores and the order ids of the last order life. The board gets a new
run and goes on counting; sidecars fill their copies again.

All of it is written under temporary names first, and put in the board's place at once.
Writers wait only at the end, while the members are read: a post for up to 5 s, a command
of update_rank for as long as it takes. If it is killed, the board is as it was; run it
again. Redis needs memory for a second copy of the board meanwhile. Its user must be
allowed what a writer's is, that of the database to read.

A board of which the ledger does not have all changes that Redis has applied is not
rebuilt. --dry-run only compares: scores that are changed at the same time may differ.

With --from log no database is needed: a super-hot board gets what the topic of its updates
in Kafka has of it. Its last change has a checksum of all members: if the topic does not give
that, as its beginning is gone, the board stays as it is. A board that was lost and written
again at once has two lives: only the latest counts, unless --earlier adds the one before.
Where Redis went on from an older file, the topic has several histories of the board: they are
listed, and nothing is written unless --both adds up the increments of all, each order id once.

Exit codes: 0 done, or no member differs; 1 a board was not rebuilt; 2 bad flag; 3 members
differ (--dry-run).`,
		Example: `  rankcache rebuild --board money:7 --redis redis://redis:6379 --rooms rooms.yaml --database-file /run/secrets/database --dry-run
  rankcache rebuild --board money:7 --redis redis://redis:6379 --rooms rooms.yaml --database-file /run/secrets/database
  rankcache rebuild --class gift-half-hour --redis redis://redis:6379 --rooms rooms.yaml --database-file /run/secrets/database -o json
  rankcache rebuild --from log --board 1_2_3 --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml`,
		Args: cli.NoArgs,
	}
	o.registerRebuild(cmd.Flags())
	output := cli.OutputFlag(cmd.Flags(), "text")
	cmd.RunE = reporting(o.Load, output, o.rebuild)
	return cmd
}

func (o *rebuildOptions) registerRebuild(flags *pflag.FlagSet) {
	o.RegisterRedis(flags)
	flags.StringVar(&o.Kafka, "kafka", "", "Kafka `brokers`, with --from log; kafka.<key> passes any librdkafka setting")
	o.RegisterNames(flags)
	o.database = cli.RegisterDatabase(flags)
	cli.ChoiceVar(flags, &o.from, "from", "", fromLedger, "where the board is read: ledger, or log for the topic of its updates", fromLedger, fromLog)
	flags.BoolVar(&o.earlier, "earlier", false, "with --from log: what members had before the board began again is added to what they have since")
	flags.BoolVar(&o.both, "both", false, "with --from log: where Redis went on from an older file, the increments of all histories are added up")
	flags.StringVar(&o.Rooms, "rooms", "", "rooms `file` (YAML), that of the writers")
	flags.StringVar(&o.board, "board", "", "the `board`")
	flags.StringVar(&o.class, "class", "", "the `class` whose boards are rebuilt; those that have expired are left out")
	flags.BoolVar(&o.dryRun, "dry-run", false, "change nothing, and list what differs")
	flags.DurationVar(&o.wait, "wait", rebuild.DefaultWait, "how long the ledger may take to write what Redis has applied")
	flags.DurationVar(&o.boardLife, "board-life", 0, "as of write: how long after the rebuild a board without a period expires that Redis does not have; 0 for never. The keep of its class wins")
	flags.DurationVar(&o.orderLife, "order-life", writer.DefaultOrderLife, "as of write, for a board that Redis does not have")
	flags.IntVar(&o.buckets, "order-buckets", writer.DefaultOrderBuckets, "as of write, for a board that Redis does not have")
	cli.MarkTyped(flags, "board", "class", "from", "dry-run", "earlier", "both")
}

const (
	fromLedger = "ledger"
	fromLog    = "log"
)

func (o *rebuildOptions) check() error {
	if (o.earlier || o.both) && o.from != fromLog || o.earlier && o.both {
		return cli.Usagef("--earlier, --both: only with --from log, and one of them")
	}
	if (o.board == "") == (o.class == "") {
		return cli.Usagef("--board or --class: want one of them")
	}
	if o.board != "" {
		if err := o.Names.CheckBoard(rankcache.BoardID(o.board)); err != nil {
			return cli.Usagef("--board: %w", err)
		}
	}
	if o.wait <= 0 || o.boardLife < 0 || o.orderLife < time.Minute || o.buckets < 1 || o.buckets > 256 {
		return cli.Usagef("--wait %v, --board-life %v, --order-life %v, --order-buckets %d: want a wait above 0, a board life of 0 or more, an order life of 1m or more, 1 to 256 buckets",
			o.wait, o.boardLife, o.orderLife, o.buckets)
	}
	return nil
}

func (o *rebuildOptions) rebuild(ctx context.Context, stderr io.Writer) (*rebuildReport, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.from == fromLog {
		if err := o.NeedKafka("rebuild --from log", "which has the log"); err != nil {
			return nil, err
		}
	}
	client, err := o.DialRedis()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var store *ledger.Store
	if o.from == fromLedger {
		if store, err = cli.OpenDatabase(&o.Options, o.database); err != nil {
			return nil, err
		}
		defer store.Close()
	}
	var follower *roomsync.Follower
	boards := origin.New(client, o.Names, origin.WithTimeout(o.RedisTimeout), origin.WithData(func(b rankcache.BoardID) bool { return follower.Tiers().HasData(b) }))
	follower = roomsync.New(roomsync.Config{File: o.Rooms, Parse: o.ParseRooms, CheckBoard: o.Names.CheckBoard, Every: 100 * time.Millisecond, Origin: boards, Shared: o.SharedRooms(client),
		Log: slog.New(slog.DiscardHandler)}, prometheus.NewRegistry())
	if err := cli.ReadRooms(ctx, follower); err != nil {
		return nil, fmt.Errorf("--rooms: %w", err)
	}
	file := follower.File()
	if o.class != "" && file.Class(o.class) == nil {
		return nil, cli.Usagef("--class %s: neither in the rooms file (--rooms) nor set at run time", o.class)
	}
	r := &rebuildReport{DryRun: o.dryRun, From: o.from, Boards: []*rebuiltBoard{}, progress: stderr, one: o.board != ""}
	var updates *rebuild.Updates
	if o.from == fromLog {
		updates = &rebuild.Updates{Kafka: o.KafkaSettings(), Names: o.Names, File: file}
	}
	r.rebuilder = rebuild.New(rebuild.Options{Redis: client, Names: o.Names, Origin: boards, Store: store, Updates: updates, AddEarlier: o.earlier, AddBranches: o.both, Wait: o.wait,
		Rules: func(b rankcache.BoardID) rebuild.Rules {
			return rebuild.RulesOf(file, b, rebuild.Defaults{BoardLife: o.boardLife, OrderLife: o.orderLife, Buckets: o.buckets})
		}, Log: slog.New(slog.NewTextHandler(stderr, nil))})
	if o.board != "" {
		r.add(ctx, rankcache.BoardID(o.board))
		return r, ctx.Err()
	}
	if updates != nil {
		return r, r.addLogged(ctx, updates, o.class)
	}
	return r, r.addClass(ctx, store, o.class)
}

// rebuiltBoard is what was done to a board. States are written as [rankcache.State.String] does.
type rebuiltBoard struct {
	Board    rankcache.BoardID   `json:"board"`
	Result   string              `json:"result"` // rebuilt; of a dry run same or differs; expired; failed
	Error    string              `json:"error,omitempty"`
	Redis    string              `json:"redis_state"`            // before
	Source   string              `json:"source_state,omitempty"` // of what it is written from
	State    string              `json:"state,omitempty"`        // after
	Members  int                 `json:"members"`                // of the ledger, or the log
	InRedis  *int                `json:"redis_members,omitempty"`
	Differ   *int                `json:"members_that_differ,omitempty"`
	List     []ledger.Difference `json:"differences,omitempty"` // the first of them, by member
	Hidden   int                 `json:"hidden_that_differ,omitempty"`
	Orders   int                 `json:"orders,omitempty"`
	Earlier  int                 `json:"earlier_members,omitempty"` // of lives before the board began again, that are not on it
	Before   *ledger.Earlier     `json:"earlier,omitempty"`         // the latest of these lives
	Forked   string              `json:"forked,omitempty"`          // other histories that the log has of it
	WaitedMS int64               `json:"writers_waited_ms,omitempty"`
	TookMS   int64               `json:"took_ms"`
}

// rebuildReport is the stable JSON of rankcache rebuild.
type rebuildReport struct {
	DryRun bool            `json:"dry_run"`
	From   string          `json:"from"` // ledger or log
	Boards []*rebuiltBoard `json:"boards"`

	rebuilder *rebuild.Rebuilder
	progress  io.Writer
	one       bool
}

const boardsOfClass = 1000 // how many names of boards are read at a time

func (r *rebuildReport) addClass(ctx context.Context, store *ledger.Store, class string) error {
	for after := rankcache.BoardID(""); ; {
		boards, err := store.Boards(ctx, class, after, boardsOfClass)
		if err != nil || len(boards) == 0 {
			return err
		}
		for _, after = range boards {
			if r.add(ctx, after); ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
}

// addLogged rebuilds or compares the boards of a class that have updates in Kafka.
func (r *rebuildReport) addLogged(ctx context.Context, updates *rebuild.Updates, class string) error {
	boards, err := updates.BoardsOf(ctx, class)
	for i := 0; err == nil && i < len(boards); i++ {
		r.add(ctx, boards[i])
		err = ctx.Err()
	}
	return err
}

func (r *rebuildReport) add(ctx context.Context, b rankcache.BoardID) {
	begun, done := time.Now(), &rebuiltBoard{Board: b}
	var err error
	if r.DryRun {
		err = r.compare(ctx, done)
	} else {
		fmt.Fprintf(r.progress, "rebuilding %s\n", b)
		err = r.rebuild(ctx, done)
	}
	done.TookMS = time.Since(begun).Milliseconds()
	switch {
	case errors.Is(err, rebuild.ErrExpired) && !r.one:
		done.Result = "expired"
	case err != nil:
		done.Result, done.Error = "failed", err.Error()
	}
	if done.Before != nil {
		fmt.Fprintf(r.progress, "%s began again as %s: %v; %d members of earlier lives are not on it\n", b, cmp.Or(done.State, done.Source), done.Before, done.Earlier)
	}
	if done.Forked != "" {
		fmt.Fprintf(r.progress, "%s: %s\n", b, done.Forked)
	}
	r.Boards = append(r.Boards, done)
}

func (r *rebuildReport) rebuild(ctx context.Context, done *rebuiltBoard) error {
	result, err := r.rebuilder.Rebuild(ctx, done.Board)
	if err != nil {
		return err
	}
	done.Result, done.Redis, done.State = "rebuilt", result.Before.String(), result.After.String()
	done.Members, done.Orders, done.Earlier, done.Before, done.Forked, done.WaitedMS = result.Members, result.Orders, result.Earlier, result.Life, result.Forked, result.Held.Milliseconds()
	return nil
}

func (r *rebuildReport) compare(ctx context.Context, done *rebuiltBoard) error {
	c, err := r.rebuilder.Compare(ctx, done.Board)
	if err != nil {
		return err
	}
	done.Result, done.Redis, done.Source = "same", c.Redis.String(), c.Ledger.String()
	done.Members, done.InRedis, done.Differ, done.List, done.Earlier, done.Before, done.Forked = c.LedgerMembers, &c.RedisMembers, &c.Differ, c.List, c.Earlier, c.Before, c.Forked
	if done.Hidden = c.Hidden; c.Differ+c.Hidden > 0 {
		done.Result = "differs"
	}
	return c.Refused
}

func (r *rebuildReport) err() error {
	failed, differ := 0, 0
	for _, b := range r.Boards {
		switch b.Result {
		case "failed":
			failed++
		case "differs":
			differ++
		}
	}
	switch {
	case failed > 0:
		return fmt.Errorf("rebuild: %d of %d boards failed", failed, len(r.Boards))
	case differ > 0:
		return &cli.ExitError{Code: cli.ExitDiffers, Err: fmt.Errorf("rebuild: %d of %d boards differ from the %s", differ, len(r.Boards), r.From)}
	}
	return nil
}

func (r *rebuildReport) print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, b := range r.Boards {
		switch b.Result {
		case "rebuilt":
			fmt.Fprintf(table, "%s\trebuilt\t%d members, %d order ids, state %s, in %v, writers waited %v\n", b.Board, b.Members, b.Orders, b.State,
				time.Duration(b.TookMS)*time.Millisecond, time.Duration(b.WaitedMS)*time.Millisecond)
		case "same", "differs":
			hidden := ""
			if b.Hidden > 0 {
				hidden = fmt.Sprintf("; of hidden members %d", b.Hidden)
			}
			fmt.Fprintf(table, "%s\t%s\tredis %d members, %s; %s %d members, %s; %d differ%s\n", b.Board, b.Result, *b.InRedis, b.Redis, r.From, b.Members, b.Source, *b.Differ, hidden)
		default:
			fmt.Fprintf(table, "%s\t%s\t%s\n", b.Board, b.Result, b.Error)
		}
		for _, d := range b.List[:min(len(b.List), maxDifferencesShown)] {
			data := ""
			if d.RedisData != d.LedgerData {
				data = fmt.Sprintf(", data %q and %q", d.RedisData, d.LedgerData)
			}
			fmt.Fprintf(table, "\t%s\tredis %s, %s %s (raw scores)%s\n", d.Member, scoreOrNone(d.Redis), r.From, scoreOrNone(d.Ledger), data)
		}
	}
	return table.Flush()
}

const maxDifferencesShown = 20 // how many members of a board are listed as text; JSON has 1,000

func scoreOrNone(score *float64) string {
	if score == nil {
		return "-"
	}
	return fmt.Sprint(*score)
}
