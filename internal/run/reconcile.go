package run

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"rankcache/internal/cli"
	"rankcache/internal/doctor"
	"rankcache/internal/health"
	"rankcache/ledger"
	"rankcache/ledger/reconcile"
	"rankcache/sidecar/adminapi"
	"rankcache/writer"
)

const (
	defaultReconcileHealth = ":8978"
	reachedPatience        = 30 * time.Second // how long a comparison waits for writers and ledger
	maxBooksQuery          = 64 << 10         // bytes
)

// ReconcileOptions are the settings of rankcache reconcile.
type ReconcileOptions struct {
	cli.Options
	database *cli.Secret
	books    *cli.Secret
	query    string
	classes  []string
	group    string
	health   string
	once     bool
	since    time.Duration
	dryRun   bool
	most     int
	output   *string
}

func NewReconcileCommand() *cobra.Command {
	o := &ReconcileOptions{}
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Compare the ledger with your own books, and post what is missing",
		Long: `Compare the ledger, order by order, with the books of the business: what a read-only
SQL query gives. An order that is missing in the ledger is posted as a command, once
more with its own order id, so that it can't count twice. What has another op or
number, or is in the ledger and not in the books, is reported; nothing is overwritten.
Orders between 10 minutes and 60 s old are compared every 5 s; with --once, those of
--since, and the command ends.

The query has two parameters, from and to in Unix milliseconds, and returns order_id,
board (or class and dims), member, op, number and at; docs/ledger/RECONCILE.md has
examples.

Exit codes of --once: 0 both are the same, 1 failed, 2 bad flag, 3 something differs.`,
		Example: `  rankcache reconcile --kafka kafka:9092 --redis redis://redis:6379 --database-file /run/secrets/database \
      --books-file /run/secrets/books --books-query-file books.sql
  rankcache reconcile --once --since 24h --dry-run -o json --books-file /run/secrets/books --books-query-file books.sql`,
		Args: cli.NoArgs,
	}
	cmd.RunE = o.LongRunning(func(cmd *cobra.Command, log *slog.Logger) error {
		return Reconcile(cmd.Context(), o, log, cmd.OutOrStdout())
	})
	o.Register(cmd.Flags())
	return cmd
}

func (o *ReconcileOptions) Register(flags *pflag.FlagSet) {
	o.Options.Register(flags)
	o.database = cli.RegisterDatabase(flags)
	o.books = cli.SecretVar(flags, "books", "", "`URL` of the database of the books: postgres://user:password@host:port/name or mysql://…; a user that may only read is enough")
	flags.StringVar(&o.query, "books-query-file", "", "`file` with the query of the books")
	flags.StringSliceVar(&o.classes, "books-class", nil, "`classes` whose boards are in the books; empty: all boards of the ledger")
	flags.StringVar(&o.group, "group", writer.DefaultGroup, "Kafka consumer group of the writers")
	flags.StringVar(&o.health, "health", defaultReconcileHealth, "`address` of probes and metrics")
	flags.BoolVar(&o.once, "once", false, "compare once, print a report and end")
	flags.DurationVar(&o.since, "since", 10*time.Minute, "how far back --once goes")
	flags.BoolVar(&o.dryRun, "dry-run", false, "post nothing")
	flags.IntVar(&o.most, "most", 1000, "differences of each kind that the report of --once lists")
	cli.MarkTyped(flags, "once", "since", "dry-run", "most")
	o.output = cli.OutputFlag(flags, "text")
}

// readQuery returns the query of the books.
func (o *ReconcileOptions) readQuery() (string, error) {
	if o.books.Get() == "" || o.query == "" {
		return "", cli.Usagef("--books-file and --books-query-file: want both: the database of the books, and the query")
	}
	if o.since <= reconcile.Settling || o.most < 0 {
		return "", cli.Usagef("--since %v, --most %d: want more than %v, as younger orders may be under way, and 0 or more", o.since, o.most, reconcile.Settling)
	}
	file, err := os.Open(o.query)
	if err != nil {
		return "", cli.Usagef("--books-query-file: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxBooksQuery+1))
	query := strings.TrimSuffix(strings.TrimSpace(string(text)), ";")
	if err != nil || query == "" || len(text) > maxBooksQuery {
		return "", errors.Join(cli.Usagef("--books-query-file %s: want one query of at most %d KiB", o.query, maxBooksQuery>>10), err)
	}
	return query, nil
}

type reconciling struct {
	*reconcile.Reconciler
	options *ReconcileOptions
	books   *sql.DB
	redis   redis.UniversalClient
	poster  *reconcile.Poster
}

// newReconciling builds every part. It starts nothing, and the caller closes it also after an error.
func newReconciling(o *ReconcileOptions, log *slog.Logger) (*reconciling, error) {
	r := &reconciling{options: o}
	query, err := o.readQuery()
	if err == nil {
		err = o.NeedKafka("reconcile", "to which it sends what is missing")
	}
	if err != nil {
		return r, err
	}
	store, err := cli.OpenDatabase(&o.Options, o.database)
	if err != nil {
		return r, err
	}
	r.Reconciler = &reconcile.Reconciler{Store: store, Classes: o.classes, Most: o.most}
	if r.books, err = ledger.OpenSQL(o.books.Get(), o.books.Get, o.DatabaseFiles("books", o.books.Get())...); err != nil {
		return r, cli.Usagef("--books: %w", err)
	}
	r.Books = reconcile.NewBooks(r.books, query)
	if r.redis, err = o.DialRedis(); err != nil {
		return r, err
	}
	r.Metas = reconcile.RedisMetas(r.redis, o.Names)
	if r.poster, err = reconcile.NewPoster(o.KafkaSettings(), o.Names.Commands, log); err != nil {
		return r, cli.Usagef("%w", err)
	}
	if !o.dryRun {
		r.Post = r.poster.Post
	}
	return r, nil
}

func (r *reconciling) close() {
	if r.poster != nil {
		r.poster.Close()
	}
	if r.redis != nil {
		_ = r.redis.Close()
	}
	if r.books != nil {
		_ = r.books.Close()
	}
	if r.Reconciler != nil {
		_ = r.Store.Close()
	}
}

// reached waits until the ledger has all commands of now.
func (r *reconciling) reached(ctx context.Context) error {
	return r.poster.Reached(ctx, r.Store, r.options.group, r.options.Names.Ledger, reachedPatience)
}

// Reconcile compares once, or until ctx is done.
func Reconcile(ctx context.Context, o *ReconcileOptions, log *slog.Logger, stdout io.Writer) error {
	r, err := newReconciling(o, log)
	defer r.close()
	if err != nil {
		return err
	}
	if login := o.KafkaLogin(log); login != nil {
		go login(ctx, r.poster.Login)
	}
	if o.once {
		return r.once(ctx, stdout)
	}
	return r.run(ctx, log)
}

// needs returns what nothing can be compared without.
func (r *reconciling) needs() health.Needs {
	o, need := r.options, func(probe func(context.Context) error) *health.Need {
		return health.NewNeed(cli.AnswerLasts).Require(probe, nil)
	}
	kafka := doctor.KafkaUse{Group: o.group, Writes: o.Names.Commands, Ends: []string{o.Names.Ledger}}
	if o.dryRun {
		kafka.Writes, kafka.Ends = "", append(kafka.Ends, o.Names.Commands)
	}
	return health.Needs{cli.ServiceKafka: o.KafkaNeed(kafka), cli.ServiceRedis: need(o.RedisNeed(r.redis, "reconcile", "", nil)),
		cli.ServiceDatabase: need(r.Store.Check), cli.ServiceBooks: need(r.Books.Check)}
}

// once compares and prints the report.
func (r *reconciling) once(ctx context.Context, to io.Writer) error {
	now := time.Now()
	if err := r.reached(ctx); err != nil {
		return err
	}
	report, err := r.Compare(ctx, now.Add(-r.options.since).UnixMilli(), now.Add(-reconcile.Settling).UnixMilli(), now)
	if err != nil {
		return err
	}
	if err := cli.PrintAs(to, *r.options.output, report, func(to io.Writer) error { return printReconciled(to, report) }); err != nil {
		return err
	}
	if n := report.Differs(); n > 0 {
		return &cli.ExitError{Code: cli.ExitDiffers, Err: fmt.Errorf("reconcile: %d of %d orders differ, %d are posted", n, max(report.Books, report.Ledger), report.Posted)}
	}
	return nil
}

func printReconciled(to io.Writer, r *reconcile.Report) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, d := range r.Differences {
		where := string(d.Board)
		if where == "" {
			where = d.Class
		}
		note := d.Why
		if d.Posted {
			note = "posted"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\tbooks %s\tledger %s\t%s\n", d.Kind, where, d.Member, d.Order, d.Books, d.Ledger, note)
	}
	fmt.Fprintf(table, "%s to %s: %d orders in the books, %d in the ledger\n", r.From.Format(time.RFC3339), r.To.Format(time.RFC3339), r.Books, r.Ledger)
	fmt.Fprintf(table, "%d missing (%d posted), %d different, %d not in the books, %d bad\n", r.Counts[reconcile.Missing], r.Posted,
		r.Counts[reconcile.Different], r.Counts[reconcile.Extra], r.Counts[reconcile.Bad])
	return table.Flush()
}

// run compares until ctx is done, and answers probes.
func (r *reconciling) run(ctx context.Context, log *slog.Logger) error {
	listeners, err := cli.OpenListeners(log, cli.FlagAddr{Flag: "health", Addr: r.options.health})
	if err != nil {
		return err
	}
	needs := r.needs()
	ready := cli.Readiness(needs, nil)
	runner := &reconcile.Runner{Reconciler: r.Reconciler, Reached: r.reached, Log: log}
	registry := runnerRegistry(&r.options.Options, runner, ready)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return runner.Run(ctx) })
	group.Go(func() error { return needs.Run(ctx) })
	health := cli.NewHealthPort(&r.options.Options, ready, registry, log).Handler()
	for _, l := range listeners {
		group.Go(func() error { return l.Serve(ctx, health, r.options.Probes(nil), log) })
	}
	log.Info("reconciling", "health", listeners.Addr("health"), "database", r.Store.Kind(), "topic", r.options.Names.Commands, "posts", !r.options.dryRun, "version", cli.Version)
	return group.Wait()
}

// runnerRegistry returns the metrics of a process that compares again and again.
func runnerRegistry(o *cli.Options, runner *reconcile.Runner, ready *adminapi.Readiness) *cli.Registry {
	all := cli.NewRegistry()
	o.RegisterProcess(all, ready)
	runner.Register(all)
	return all
}
