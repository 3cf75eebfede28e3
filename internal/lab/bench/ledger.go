package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/servers"
	"rankcache/ledger"
	"rankcache/wire"
)

// ledgerBench is one run of rankcache-lab bench ledger.
type ledgerBench struct {
	rows, boards, members, rate int
	progress                    io.Writer
	kafka                       string
}

// ledgerRow is the stable JSON of one kind of database.
type ledgerRow struct {
	Database        string  `json:"database"`
	RowsPerS        float64 `json:"rows_per_s"`
	BareRowsPerS    float64 `json:"bare_rows_per_s"` // the same rows into rank_log and rank_score, by batches of 2,000
	Ratio           float64 `json:"ratio"`
	ServingRowsPerS float64 `json:"serving_rows_per_s"` // with the index that --serve-reads needs
	LagP99Ms        float64 `json:"lag_p99_ms"`         // from produced to committed, at the steady rate
	BytesPerRow     float64 `json:"bytes_per_row"`
}

func newBenchLedgerCommand() *cobra.Command {
	b := &ledgerBench{}
	cmd := &cobra.Command{
		Use:   "ledger",
		Short: "Measure the ledger beside a bare batch insert, in PostgreSQL and MariaDB",
		Long: `Fill a topic and have the ledger write it into a database with durable settings,
beside the same rows inserted in batches with nothing around; then send changes at a steady
rate and measure how long each takes until it is in the database. Starts the databases and
a Kafka broker (make setup).`,
		Example: "  rankcache-lab bench ledger -o json\n  rankcache-lab bench ledger --rows 50000",
		Args:    cli.NoArgs,
	}
	flags := cmd.Flags()
	flags.IntVar(&b.rows, "rows", 200_000, "changes in the topic")
	flags.IntVar(&b.boards, "boards", 24, "boards of the changes")
	flags.IntVar(&b.members, "members", 5_000, "members of each board")
	flags.IntVar(&b.rate, "rate", 2_000, "changes a second of the steady part, for 5 s")
	output := cli.OutputFlag(flags, "text")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b.progress = cmd.ErrOrStderr()
		rows, err := b.run(cmd.Context())
		if err != nil {
			return err
		}
		return cli.PrintAs(cmd.OutOrStdout(), *output, rows, func(to io.Writer) error { return printLedger(to, rows) })
	}
	return cmd
}

func printLedger(to io.Writer, rows []ledgerRow) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "database\trows/s\tbare rows/s\tratio\tserving reads rows/s\tlag p99\tbytes a row")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.2f\t%.0f\t%.0f ms\t%.0f\n", r.Database, r.RowsPerS, r.BareRowsPerS, r.Ratio, r.ServingRowsPerS, r.LagP99Ms, r.BytesPerRow)
	}
	return table.Flush()
}

func (b *ledgerBench) run(ctx context.Context) (rows []ledgerRow, err error) {
	if b.rows < 1 || b.boards < 1 || b.members < 1 || b.rate < 1 {
		return nil, cli.Usagef("want --rows, --boards, --members and --rate of 1 or more")
	}
	broker, err := servers.StartKafka(ctx, servers.KafkaOptions{})
	if err != nil {
		return nil, err
	}
	defer broker.Close()
	b.kafka = broker.Addr()
	for _, start := range []func(context.Context, servers.SQLOptions) (*servers.SQL, error){servers.StartPostgres, servers.StartMariaDB} {
		row, err := b.row(ctx, start)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (b *ledgerBench) row(ctx context.Context, start func(context.Context, servers.SQLOptions) (*servers.SQL, error)) (row ledgerRow, err error) {
	server, err := start(ctx, servers.SQLOptions{Durable: true})
	if err != nil {
		return row, err
	}
	defer server.Close()
	row.Database = server.Kind
	updates := b.updates(b.rows)
	topic := "ledger-" + server.Kind
	client, err := b.produce(ctx, topic, updates)
	if err != nil {
		return row, err
	}
	defer client.Close()
	if row.BareRowsPerS, err = b.bare(ctx, server, updates); err != nil {
		return row, err
	}
	fmt.Fprintf(b.progress, "%s: bare %.0f rows/s\n", server.Kind, row.BareRowsPerS)
	err = b.whole(ctx, server, topic, client, &row)
	row.Ratio = row.RowsPerS / row.BareRowsPerS
	return row, err
}

// updates makes increments of the boards in turn.
func (b *ledgerBench) updates(n int) []*wire.LedgerUpdate {
	all := make([]*wire.LedgerUpdate, n)
	for i := range all {
		board, seq := i%b.boards, i/b.boards+1
		member := fmt.Sprintf("10%06d", (seq*7919)%b.members)
		all[i] = &wire.LedgerUpdate{Update: wire.Update{Board: rankcache.BoardID(fmt.Sprintf("gift:%d:20261122", board)), Member: member, Op: wire.OpIncr, Delta: 1,
			Score: float64(seq), Run: 1838429319476737, Seq: uint64(seq), Sum: uint64(i), HasSum: true, Members: b.members, OrderID: fmt.Sprintf("gift-%d-%d", board, seq), At: 1700000000000 + int64(i)},
			Class: "gift", Dims: map[string]string{"zone": fmt.Sprint(board)}, Tag: "20261122"}
	}
	return all
}

// produce makes the topic and fills it; the client writes to it further.
func (b *ledgerBench) produce(ctx context.Context, topic string, updates []*wire.LedgerUpdate) (*kgo.Client, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.kafka), kgo.MaxBufferedRecords(1<<20), kgo.DefaultProduceTopic(topic))
	if err != nil {
		return nil, err
	}
	if err = fill.CreateTopic(ctx, client, topic, 12); err == nil {
		records := make([]*kgo.Record, len(updates))
		for i, u := range updates {
			records[i] = &kgo.Record{Key: []byte(u.Board), Value: wire.AppendLedgerUpdate(nil, u)}
		}
		err = client.ProduceSync(ctx, records...).FirstErr()
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// bare inserts the rows with nothing around.
func (b *ledgerBench) bare(ctx context.Context, server *servers.SQL, updates []*wire.LedgerUpdate) (float64, error) {
	store, err := b.database(ctx, server, "bare")
	if err != nil {
		return 0, err
	}
	defer store.Close()
	begun := time.Now()
	for batch := range slices.Chunk(updates, ledger.MaxBatch) {
		if err := store.InsertBare(ctx, batch); err != nil {
			return 0, err
		}
	}
	return float64(len(updates)) / time.Since(begun).Seconds(), nil
}

// database returns a new database with the ledger's tables.
func (b *ledgerBench) database(ctx context.Context, server *servers.SQL, name string) (*ledger.Store, error) {
	url, err := servers.NewDatabase(ctx, server.Kind, server.Addr(), name)
	if err != nil {
		return nil, err
	}
	store, err := ledger.Open(url, nil)
	if err != nil {
		return nil, err
	}
	return store, store.Migrate(ctx)
}

// whole has a ledger write the topic, and then changes at a steady rate; and another one that
// serves reads the topic alone.
func (b *ledgerBench) whole(ctx context.Context, server *servers.SQL, topic string, client *kgo.Client, row *ledgerRow) (err error) {
	if row.ServingRowsPerS, err = b.write(ctx, server, topic, "serving", nil); err != nil {
		return err
	}
	fmt.Fprintf(b.progress, "%s: with the index for reads %.0f rows/s\n", server.Kind, row.ServingRowsPerS)
	row.RowsPerS, err = b.write(ctx, server, topic, "whole", func(ctx context.Context, l *ledger.Ledger) (err error) {
		if row.BytesPerRow, err = bytesPerRow(ctx, server, b.rows); err != nil {
			return err
		}
		row.LagP99Ms, err = b.steady(ctx, client, l)
		return err
	})
	fmt.Fprintf(b.progress, "%s: ledger %.0f rows/s\n", server.Kind, row.RowsPerS)
	return err
}

// write has a ledger write the topic into a new database and returns the rows a second. Then
// it calls more, if there is more to do; else the ledger has the index for reads.
func (b *ledgerBench) write(ctx context.Context, server *servers.SQL, topic, name string, more func(context.Context, *ledger.Ledger) error) (float64, error) {
	store, err := b.database(ctx, server, name)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	if more == nil {
		if err := store.MakeRankIndex(ctx); err != nil {
			return 0, err
		}
	}
	l, err := ledger.New(ledger.Options{Store: store, Kafka: map[string]string{"bootstrap.servers": b.kafka}, Topic: topic, Group: name, ServeReads: more == nil, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	await := func(n int64) error {
		for l.Status().Rows < n {
			select {
			case err := <-ended:
				ended <- err
				return errors.Join(errors.New("the ledger ended"), err)
			case <-time.After(time.Millisecond):
			}
		}
		return nil
	}
	if err := await(1); err != nil { // joining the group is not measured
		return 0, err
	}
	begun, from := time.Now(), l.Status().Rows
	if err := await(int64(b.rows)); err != nil {
		return 0, err
	}
	rate := float64(int64(b.rows)-from) / time.Since(begun).Seconds()
	if more != nil {
		err = more(ctx, l)
	}
	return rate, err
}

// steady produces at the rate for 5 s and returns the 99th percentile of the time until a
// change is in the database, in milliseconds.
func (b *ledgerBench) steady(ctx context.Context, client *kgo.Client, l *ledger.Ledger) (float64, error) {
	more := b.updates(b.rows + 5*b.rate)[b.rows:]
	sent, lags := make([]time.Time, len(more)), make([]float64, 0, len(more))
	begun := time.Now()
	next, done := 0, 0
	for done < len(more) {
		for due := min(len(more), int(time.Since(begun).Seconds()*float64(b.rate))); next < due; next++ {
			sent[next] = time.Now()
			client.Produce(ctx, &kgo.Record{Key: []byte(more[next].Board), Value: wire.AppendLedgerUpdate(nil, more[next])}, nil)
		}
		for ; done < int(l.Status().Rows)-b.rows; done++ {
			lags = append(lags, float64(time.Since(sent[done]).Microseconds())/1000)
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	slices.Sort(lags)
	return lags[len(lags)*99/100], nil
}

// bytesPerRow returns the size of rank_log and rank_score with their indexes for each row
// of rank_log.
func bytesPerRow(ctx context.Context, server *servers.SQL, rows int) (float64, error) {
	db, err := servers.OpenSQL(server.URL("whole"))
	if err != nil {
		return 0, err
	}
	defer db.Close()
	query := "SELECT pg_total_relation_size('rank_log') + pg_total_relation_size('rank_score')"
	if strings.HasPrefix(server.Kind, "mysql") {
		query = "SELECT SUM(data_length + index_length) FROM information_schema.tables WHERE table_schema = 'whole' AND table_name IN ('rank_log', 'rank_score')"
		if _, err := db.ExecContext(ctx, "ANALYZE TABLE rank_log, rank_score"); err != nil {
			return 0, err
		}
	}
	var size sql.NullFloat64
	err = db.QueryRowContext(ctx, query).Scan(&size)
	return size.Float64 / float64(rows), err
}
